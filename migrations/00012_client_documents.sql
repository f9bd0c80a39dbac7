-- +goose Up
-- What is known of the document behind a client_id that is a URL. The client it
-- describes is the row of the same id in clients; a row without one only tells
-- when to try again.
CREATE TABLE client_documents (
    client_id     TEXT NOT NULL PRIMARY KEY,
    hash          TEXT NOT NULL,
    etag          TEXT NOT NULL,
    last_modified TEXT NOT NULL,
    first_seen_at BIGINT NOT NULL,
    fetched_at    BIGINT,
    fresh_until   BIGINT,
    tried_at      BIGINT NOT NULL,
    retry_at      BIGINT,
    failures      BIGINT NOT NULL,
    problem       TEXT NOT NULL,
    failure       TEXT NOT NULL
);
CREATE INDEX client_documents_tried ON client_documents (tried_at);

-- How many fetches were spent in the window that began at started_at.
CREATE TABLE fetch_budgets (
    name       TEXT NOT NULL PRIMARY KEY,
    spent      BIGINT NOT NULL,
    started_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE fetch_budgets;
DROP TABLE client_documents;
