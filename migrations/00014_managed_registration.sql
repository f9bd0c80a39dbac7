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

-- When a client that the operator verified became another than the one they saw.
ALTER TABLE clients ADD COLUMN verified_until BIGINT;

-- A registration that is repeated finds its client by this.
CREATE INDEX clients_document ON clients (source, document_hash, created_at);
-- The budget of all sources together, and what is old enough to be removed.
CREATE INDEX clients_created_at ON clients (created_at);
-- Those that a new client can be mistaken for: few, however many register.
CREATE INDEX clients_identified ON clients (created_at, id) WHERE kind <> 'dynamic' OR verified_at IS NOT NULL;

-- +goose Down
DROP INDEX clients_identified;
DROP INDEX clients_created_at;
DROP INDEX clients_document;
ALTER TABLE clients DROP COLUMN verified_until;
DROP TABLE initial_access_tokens;
