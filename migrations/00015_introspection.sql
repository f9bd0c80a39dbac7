-- +goose Up
-- The credential with which an MCP server asks about tokens (RFC 7662 §2.1), with
-- the secret before the last rotation, which is good for a while.
ALTER TABLE resources ADD COLUMN introspection_id TEXT;
ALTER TABLE resources ADD COLUMN secret_hash BYTEA;
ALTER TABLE resources ADD COLUMN old_secret_hash BYTEA;
ALTER TABLE resources ADD COLUMN old_secret_expires_at BIGINT;
CREATE UNIQUE INDEX resources_introspection_id ON resources (introspection_id);

-- +goose Down
DROP INDEX resources_introspection_id;
ALTER TABLE resources DROP COLUMN old_secret_expires_at;
ALTER TABLE resources DROP COLUMN old_secret_hash;
ALTER TABLE resources DROP COLUMN secret_hash;
ALTER TABLE resources DROP COLUMN introspection_id;
