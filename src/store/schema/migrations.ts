/**
 * Forward only; an entry never changes once released. One text for every engine, with these words replaced:
 * {key} the table's integer primary key · {int} a 64-bit integer · {clustered} rows stored in key order.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE daemons (
    name TEXT PRIMARY KEY,
    epoch {int} NOT NULL,
    lease_until {int} NOT NULL,
    address TEXT NOT NULL,
    pid {int} NOT NULL,
    host TEXT NOT NULL,
    started_at {int} NOT NULL
  );

  CREATE TABLE agents (
    name TEXT PRIMARY KEY,
    session_state TEXT NOT NULL,
    declared_status TEXT,
    current_task TEXT,
    paused {int} NOT NULL DEFAULT 0,
    registered_at {int} NOT NULL,
    updated_at {int} NOT NULL,
    owner TEXT,
    owner_epoch {int}
  );

  CREATE TABLE tokens (
    id {key},
    agent TEXT,
    hash TEXT NOT NULL UNIQUE,
    created_at {int} NOT NULL,
    revoked_at {int}
  );

  CREATE TABLE messages (
    seq {key},
    sender TEXT NOT NULL,
    recipient TEXT NOT NULL,
    title TEXT NOT NULL,
    content TEXT NOT NULL,
    priority {int} NOT NULL,
    in_reply_to {int},
    correlation {int} NOT NULL,
    hop {int} NOT NULL,
    at {int} NOT NULL,
    digest TEXT NOT NULL
  );

  CREATE TABLE deliveries (
    recipient TEXT NOT NULL,
    message {int} NOT NULL,
    priority {int} NOT NULL,
    state TEXT NOT NULL,
    attempts {int} NOT NULL,
    claimed_until {int},
    updated_at {int} NOT NULL,
    evidence TEXT,
    PRIMARY KEY (recipient, message)
  ) {clustered};
  CREATE INDEX deliveries_open ON deliveries (recipient, message) WHERE state NOT IN ('read', 'failed');

  CREATE TABLE idempotency (
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    receipt TEXT NOT NULL,
    at {int} NOT NULL,
    PRIMARY KEY (principal, key)
  ) {clustered};

  CREATE TABLE parked (
    pair TEXT PRIMARY KEY,
    request {int} NOT NULL,
    at {int} NOT NULL
  );

  CREATE TABLE human_requests (
    id {key},
    kind TEXT NOT NULL,
    purpose TEXT NOT NULL,
    state TEXT NOT NULL,
    asker TEXT NOT NULL,
    question TEXT NOT NULL,
    reason TEXT NOT NULL,
    action TEXT,
    action_hash TEXT,
    context TEXT NOT NULL,
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL,
    decided_at {int},
    decided_by TEXT,
    comment TEXT
  );
  CREATE INDEX human_requests_open ON human_requests (id) WHERE state = 'open';

  CREATE TABLE timers (
    kind TEXT NOT NULL,
    ref TEXT NOT NULL,
    due_at {int} NOT NULL,
    PRIMARY KEY (kind, ref)
  ) {clustered};
  CREATE INDEX timers_due ON timers (due_at);

  CREATE TABLE audit (
    {audit_key},
    at {int} NOT NULL,
    type TEXT NOT NULL,
    class TEXT NOT NULL,
    actor TEXT NOT NULL,
    subject TEXT,
    text TEXT NOT NULL,
    confidence DOUBLE PRECISION,
    data TEXT NOT NULL,
    hash TEXT NOT NULL
  );
  CREATE INDEX audit_at ON audit (at);
  CREATE TABLE audit_heads (
    chain TEXT PRIMARY KEY,
    seq {int} NOT NULL,
    hash TEXT NOT NULL
  );
  `,
]
