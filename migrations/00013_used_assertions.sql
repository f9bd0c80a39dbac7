-- +goose Up
-- Client assertions (RFC 7523) that were used: one row until it would have expired.
CREATE TABLE used_assertions (
    client_id  TEXT   NOT NULL,
    jti_hash   BYTEA  NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (client_id, jti_hash)
);
CREATE INDEX used_assertions_expires_at ON used_assertions (expires_at);

-- +goose Down
DROP TABLE used_assertions;
