-- +goose Up
CREATE TABLE authorization_requests (
    id                TEXT NOT NULL PRIMARY KEY,
    reference         TEXT NOT NULL,
    session_id        TEXT NOT NULL,
    source            TEXT NOT NULL,
    client_id         TEXT NOT NULL,
    redirect_uri      TEXT NOT NULL,
    resource          TEXT NOT NULL,
    scopes            TEXT NOT NULL,
    offline_named     BOOLEAN NOT NULL,
    state             TEXT NOT NULL,
    has_state         BOOLEAN NOT NULL,
    prompt            TEXT NOT NULL,
    code_challenge    TEXT NOT NULL,
    params            TEXT NOT NULL,
    created_at        BIGINT NOT NULL,
    expires_at        BIGINT NOT NULL,
    decision          TEXT NOT NULL,
    approved_scopes   TEXT NOT NULL,
    stay_connected    BOOLEAN NOT NULL,
    decided_at        BIGINT,
    decided_by        TEXT NOT NULL,
    finished_at       BIGINT,
    grant_id          TEXT NOT NULL,
    error_code        TEXT NOT NULL,
    error_description TEXT NOT NULL,
    once_hash         TEXT,
    returned_at       BIGINT
);
CREATE INDEX authorization_requests_session ON authorization_requests (session_id);
CREATE INDEX authorization_requests_source ON authorization_requests (source, created_at);
CREATE INDEX authorization_requests_expires_at ON authorization_requests (expires_at);
CREATE UNIQUE INDEX authorization_requests_once ON authorization_requests (once_hash);

-- +goose Down
DROP TABLE authorization_requests;
