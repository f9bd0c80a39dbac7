-- +goose Up
-- Initial access tokens (RFC 7591 §3): who has one may register while
-- registration is not open. Only the hash is kept.
CREATE TABLE initial_access_tokens (
    id           TEXT NOT NULL PRIMARY KEY,
    name         TEXT NOT NULL,
    token_hash   BYTEA NOT NULL UNIQUE,
    max_uses     BIGINT NOT NULL,
    uses         BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT
);

-- A registration that is repeated finds its client by this.
CREATE INDEX clients_document ON clients (source, document_hash);

-- +goose Down
DROP INDEX clients_document;
DROP TABLE initial_access_tokens;
