-- +goose Up
CREATE TABLE resources (
    canonical    TEXT NOT NULL PRIMARY KEY,
    identifier   TEXT NOT NULL,
    name         TEXT NOT NULL,
    claimed_name TEXT NOT NULL,
    is_default   BOOLEAN NOT NULL,
    scopes       TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL
);
-- tokens name a resource by its identifier
CREATE UNIQUE INDEX resources_identifier ON resources (identifier);
-- at most one default (D6)
CREATE UNIQUE INDEX resources_default ON resources (is_default) WHERE is_default;

-- +goose Down
DROP TABLE resources;
