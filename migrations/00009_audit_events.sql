-- +goose Up
CREATE TABLE audit_events (
    id         TEXT NOT NULL PRIMARY KEY,
    at         BIGINT NOT NULL,
    name       TEXT NOT NULL,
    actor      TEXT NOT NULL,
    subject    TEXT NOT NULL,
    client_id  TEXT NOT NULL,
    resource   TEXT NOT NULL,
    grant_id   TEXT NOT NULL,
    outcome    TEXT NOT NULL,
    ip         TEXT NOT NULL,
    request_id TEXT NOT NULL,
    detail     TEXT NOT NULL
);
CREATE INDEX audit_events_at ON audit_events (at);

-- +goose Down
DROP TABLE audit_events;
