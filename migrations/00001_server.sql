-- +goose Up
-- What this database belongs to: the issuer, and a check value for each secret
-- kid (D2). No secret is ever here.
CREATE TABLE server (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE secret_checks (
    kid         BIGINT NOT NULL PRIMARY KEY,
    check_value BYTEA NOT NULL,
    created_at  BIGINT NOT NULL
);

-- +goose Down
DROP TABLE secret_checks;
DROP TABLE server;
