-- +goose Up
-- Browser sessions, by the hash of the cookie's value (D33).
CREATE TABLE sessions (
    id           TEXT NOT NULL PRIMARY KEY,
    subject      TEXT NOT NULL,
    auth_at      BIGINT,
    ip           TEXT NOT NULL,
    -- the class of ip, for the cap on anonymous rows (DO-02)
    source       TEXT NOT NULL,
    user_agent   TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL
);
CREATE INDEX sessions_subject ON sessions (subject);
CREATE INDEX sessions_anonymous ON sessions (source, expires_at) WHERE subject = '';
CREATE INDEX sessions_expires_at ON sessions (expires_at);

-- Browsers in which an account signed in before, so that guessing elsewhere
-- never locks its owner out (SL-04).
CREATE TABLE devices (
    id         TEXT NOT NULL,
    subject    TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (id, subject)
);
CREATE INDEX devices_expires_at ON devices (expires_at);

-- Failed sign-ins, by what was tried and from where.
CREATE TABLE guesses (
    name          TEXT NOT NULL PRIMARY KEY,
    failures      BIGINT NOT NULL,
    blocked_until BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL
);
CREATE INDEX guesses_expires_at ON guesses (expires_at);

-- +goose Down
DROP TABLE guesses;
DROP TABLE devices;
DROP TABLE sessions;
