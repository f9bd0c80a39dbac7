-- +goose Up
CREATE TABLE clients (
    id                TEXT NOT NULL PRIMARY KEY,
    kind              TEXT NOT NULL,
    metadata          TEXT NOT NULL,
    secret_hash       BYTEA,
    secret_expires_at BIGINT,
    resources         TEXT NOT NULL,
    source            TEXT NOT NULL,
    verified_at       BIGINT,
    disabled_at       BIGINT,
    document_hash     TEXT NOT NULL,
    created_at        BIGINT NOT NULL,
    updated_at        BIGINT NOT NULL,
    last_used_at      BIGINT
);
CREATE INDEX clients_source ON clients (source, created_at);

-- What may be remembered of an approval (D10).
CREATE TABLE consents (
    subject        TEXT NOT NULL,
    client_id      TEXT NOT NULL,
    redirect_uri   TEXT NOT NULL,
    resource       TEXT NOT NULL,
    scopes         TEXT NOT NULL,
    stay_connected BOOLEAN NOT NULL,
    document_hash  TEXT NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    PRIMARY KEY (subject, client_id, redirect_uri, resource)
);
CREATE INDEX consents_client ON consents (client_id);

-- +goose Down
DROP TABLE consents;
DROP TABLE clients;
