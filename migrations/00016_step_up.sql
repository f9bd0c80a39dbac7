-- +goose Up
-- What a person refused on the step-up page: one row a set of permissions that a
-- client asked for beyond a remembered consent. quiet says that the last refusal
-- was the third within an hour; previous_at is the one before it, 0 for none.
-- A refusal means nothing without its consent, and goes with it.
CREATE TABLE refusals (
    subject      TEXT NOT NULL,
    client_id    TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    resource     TEXT NOT NULL,
    set_hash     TEXT NOT NULL,
    scopes       TEXT NOT NULL,
    refused_at   BIGINT NOT NULL,
    previous_at  BIGINT NOT NULL,
    quiet        BOOLEAN NOT NULL,
    PRIMARY KEY (subject, client_id, redirect_uri, resource, set_hash),
    FOREIGN KEY (subject, client_id, redirect_uri, resource)
        REFERENCES consents (subject, client_id, redirect_uri, resource) ON DELETE CASCADE
);
CREATE INDEX refusals_refused_at ON refusals (refused_at);

-- Whether an answer adds to a remembered consent, and rests on it.
ALTER TABLE authorization_requests ADD COLUMN extends_consent BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
ALTER TABLE authorization_requests DROP COLUMN extends_consent;
DROP TABLE refusals;
