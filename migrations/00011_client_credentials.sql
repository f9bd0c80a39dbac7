-- +goose Up
-- Rotation of secrets, the registration access token (RFC 7592), blocking.
ALTER TABLE clients ADD COLUMN old_secret_hash BYTEA;
ALTER TABLE clients ADD COLUMN old_secret_expires_at BIGINT;
ALTER TABLE clients ADD COLUMN registration_token_hash BYTEA;
ALTER TABLE clients ADD COLUMN blocked_at BIGINT;

-- +goose Down
ALTER TABLE clients DROP COLUMN blocked_at;
ALTER TABLE clients DROP COLUMN registration_token_hash;
ALTER TABLE clients DROP COLUMN old_secret_expires_at;
ALTER TABLE clients DROP COLUMN old_secret_hash;
