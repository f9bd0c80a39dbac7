-- +goose Up
-- Signing keys (D28). private_sealed is AES-256-GCM under the state secret.
CREATE TABLE signing_keys (
    kid            TEXT NOT NULL PRIMARY KEY,
    algorithm      TEXT NOT NULL,
    public_jwk     TEXT NOT NULL,
    private_sealed BYTEA NOT NULL,
    created_at     BIGINT NOT NULL,
    -- signs from here on
    active_at      BIGINT NOT NULL,
    -- published until here; set when its successor is made, NULL before
    retire_at      BIGINT
);

-- +goose Down
DROP TABLE signing_keys;
