-- +goose Up
-- Whose turn periodic work is: of several processes one does it.
CREATE TABLE leases (
    name       TEXT NOT NULL PRIMARY KEY,
    expires_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE leases;
