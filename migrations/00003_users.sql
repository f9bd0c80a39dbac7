-- +goose Up
CREATE TABLE users (
    id                  TEXT NOT NULL PRIMARY KEY,
    email               TEXT NOT NULL,
    email_key           TEXT NOT NULL UNIQUE,
    name                TEXT NOT NULL,
    password_hash       TEXT NOT NULL,
    operator            BOOLEAN NOT NULL,
    disabled_at         BIGINT,
    password_changed_at BIGINT,
    last_sign_in_at     BIGINT,
    created_at          BIGINT NOT NULL,
    updated_at          BIGINT NOT NULL
);

-- One-time links, by the hash of their token (D3).
CREATE TABLE setup_links (
    token_hash TEXT NOT NULL PRIMARY KEY,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at    BIGINT
);

-- +goose Down
DROP TABLE setup_links;
DROP TABLE users;
