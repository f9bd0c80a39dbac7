-- +goose Up
-- One row an approval (D10): the code is generation 0, refresh token n is
-- generation n. salt stands under the tags of its token strings and is erased
-- when the grant ends (D29). Indexes leave out every column that rotation
-- writes, so that a rotation on PostgreSQL stays a HOT update.
CREATE TABLE grants (
    id                 TEXT NOT NULL PRIMARY KEY,
    client_id          TEXT NOT NULL,
    subject            TEXT NOT NULL,
    resource           TEXT NOT NULL,
    scopes             TEXT NOT NULL,
    offline_access     BOOLEAN NOT NULL,
    offline_named      BOOLEAN NOT NULL,
    redirect_uri       TEXT NOT NULL,
    code_challenge     TEXT NOT NULL,
    auth_method        TEXT NOT NULL,
    auth_at            BIGINT,
    salt               BYTEA,
    generation         BIGINT NOT NULL,
    advanced_at        BIGINT,
    code_expires_at    BIGINT NOT NULL,
    refresh_expires_at BIGINT,
    expires_at         BIGINT NOT NULL,
    ended_at           BIGINT,
    end_reason         TEXT NOT NULL,
    created_at         BIGINT NOT NULL
);
CREATE INDEX grants_subject ON grants (subject, client_id);
CREATE INDEX grants_client ON grants (client_id);
CREATE INDEX grants_code_expires_at ON grants (code_expires_at);
CREATE INDEX grants_expires_at ON grants (expires_at);

-- +goose Down
DROP TABLE grants;
