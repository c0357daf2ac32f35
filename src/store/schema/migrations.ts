import type { IdKind } from '../../base/ids.ts'

/**
 * Forward only: a released entry never changes. The same text for every engine, with these placeholders:
 * {key} the table's integer primary key · {int} a 64-bit integer · {text} text that sorts by its bytes ·
 * {clustered} rows stored in key order · {serial} a key that the engine increments · {github_search} full-text search.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE daemons (
    name {text} PRIMARY KEY,
    epoch {int} NOT NULL,
    lease_until {int} NOT NULL,
    address {text} NOT NULL,
    pid {int} NOT NULL,
    host {text} NOT NULL,
    started_at {int} NOT NULL
  );

  CREATE TABLE agents (
    name {text} PRIMARY KEY,
    session_state {text} NOT NULL,
    declared_status {text},
    current_task {text},
    paused {int} NOT NULL DEFAULT 0,
    registered_at {int} NOT NULL,
    updated_at {int} NOT NULL,
    owner {text},
    owner_epoch {int}
  );

  CREATE TABLE tokens (
    id {key},
    agent {text},
    hash {text} NOT NULL UNIQUE,
    created_at {int} NOT NULL,
    revoked_at {int}
  );

  CREATE TABLE messages (
    seq {key},
    sender {text} NOT NULL,
    recipient {text} NOT NULL,
    title {text} NOT NULL,
    content {text} NOT NULL,
    priority {int} NOT NULL,
    in_reply_to {int},
    correlation {int} NOT NULL,
    hop {int} NOT NULL,
    at {int} NOT NULL,
    digest {text} NOT NULL
  );

  CREATE TABLE deliveries (
    recipient {text} NOT NULL,
    message {int} NOT NULL,
    priority {int} NOT NULL,
    state {text} NOT NULL,
    attempts {int} NOT NULL,
    claimed_until {int},
    updated_at {int} NOT NULL,
    evidence {text},
    PRIMARY KEY (recipient, message)
  ) {clustered};
  CREATE INDEX deliveries_open ON deliveries (recipient, message) WHERE state NOT IN ('read', 'failed');

  CREATE TABLE idempotency (
    principal {text} NOT NULL,
    key {text} NOT NULL,
    digest {text} NOT NULL,
    receipt {text} NOT NULL,
    at {int} NOT NULL,
    PRIMARY KEY (principal, key)
  ) {clustered};

  CREATE TABLE parked (
    pair {text} PRIMARY KEY,
    request {int} NOT NULL,
    at {int} NOT NULL
  );

  CREATE TABLE human_requests (
    id {key},
    kind {text} NOT NULL,
    purpose {text} NOT NULL,
    state {text} NOT NULL,
    asker {text} NOT NULL,
    question {text} NOT NULL,
    reason {text} NOT NULL,
    action {text},
    action_hash {text},
    context {text} NOT NULL,
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL,
    decided_at {int},
    decided_by {text},
    comment {text}
  );
  CREATE INDEX human_requests_open ON human_requests (id) WHERE state = 'open';

  CREATE TABLE timers (
    kind {text} NOT NULL,
    ref {text} NOT NULL,
    due_at {int} NOT NULL,
    PRIMARY KEY (kind, ref)
  ) {clustered};
  CREATE INDEX timers_due ON timers (due_at);

  CREATE TABLE audit (
    {audit_key},
    at {int} NOT NULL,
    type {text} NOT NULL,
    class {text} NOT NULL,
    actor {text} NOT NULL,
    subject {text},
    text {text} NOT NULL,
    confidence DOUBLE PRECISION,
    data {text} NOT NULL,
    hash {text} NOT NULL
  );
  CREATE INDEX audit_at ON audit (at);
  CREATE TABLE audit_heads (
    chain {text} PRIMARY KEY,
    seq {int} NOT NULL,
    hash {text} NOT NULL
  );
  `,
  `
  CREATE TABLE sessions (
    agent {text} PRIMARY KEY,
    nonce {text} NOT NULL,
    kept {text},
    token {int},
    wanted {int} NOT NULL,
    granted DOUBLE PRECISION NOT NULL DEFAULT 0,
    updated_at {int} NOT NULL
  );

  CREATE TABLE usage (
    agent {text} PRIMARY KEY,
    model {text},
    context_tokens {int},
    context_window {int},
    lines {int},
    bytes {int},
    updated_at {int} NOT NULL
  );

  CREATE TABLE spending (
    agent {text} NOT NULL,
    key {text} NOT NULL,
    model {text},
    input {int} NOT NULL,
    output {int} NOT NULL,
    cache_read {int} NOT NULL,
    cache_write {int} NOT NULL,
    cost DOUBLE PRECISION,
    at {int} NOT NULL,
    PRIMARY KEY (agent, key)
  ) {clustered};

  CREATE TABLE twins (
    agent {text} NOT NULL,
    digest {text} NOT NULL,
    channel {text} NOT NULL,
    receipt {text} NOT NULL,
    at {int} NOT NULL,
    PRIMARY KEY (agent, digest, channel)
  ) {clustered};
  `,
  `
  CREATE TABLE tasks (
    id {key},
    parent {int},
    root {int} NOT NULL,
    delegator {text} NOT NULL,
    agent {text} NOT NULL,
    state {text} NOT NULL,
    document {text} NOT NULL,
    created_at {int} NOT NULL,
    ended_at {int},
    updated_at {int} NOT NULL
  );
  CREATE INDEX tasks_open ON tasks (agent, id) WHERE ended_at IS NULL;
  CREATE INDEX tasks_children ON tasks (parent, id);
  CREATE INDEX tasks_of_root ON tasks (root, id);
  `,
  `
  ALTER TABLE messages ADD COLUMN task {int};
  ALTER TABLE messages ADD COLUMN kind {text};
  ALTER TABLE messages ADD COLUMN quiet {int} NOT NULL DEFAULT 0;
  CREATE INDEX messages_of_task ON messages (task, seq) WHERE task IS NOT NULL;

  CREATE TABLE breakers (
    agent {text} PRIMARY KEY,
    failures {int} NOT NULL,
    opened_at {int},
    tried_at {int}
  );

  CREATE TABLE said_ids (
    name {text} NOT NULL,
    speaker {text} NOT NULL,
    ref {text} NOT NULL,
    at {int} NOT NULL,
    PRIMARY KEY (name, speaker)
  ) {clustered};
  `,
  `
  ALTER TABLE audit ADD COLUMN root {int};
  CREATE INDEX audit_of_tree ON audit (root, seq) WHERE root IS NOT NULL;
  `,
  `
  ALTER TABLE tokens ADD COLUMN person {text};

  ALTER TABLE human_requests ADD COLUMN form {text} NOT NULL DEFAULT '{}';
  ALTER TABLE human_requests ADD COLUMN approvers {text};
  ALTER TABLE human_requests ADD COLUMN quorum {int} NOT NULL DEFAULT 1;
  ALTER TABLE human_requests ADD COLUMN asked_action {text};
  ALTER TABLE human_requests ADD COLUMN modified_by {text};

  CREATE TABLE approvals (
    request {int} NOT NULL,
    person {text} NOT NULL,
    action_hash {text} NOT NULL,
    comment {text},
    at {int} NOT NULL,
    PRIMARY KEY (request, person, action_hash)
  ) {clustered};
  `,
  `
  CREATE TABLE halt (
    team {text} PRIMARY KEY,
    halted_by {text} NOT NULL,
    reason {text},
    at {int} NOT NULL,
    agents {text} NOT NULL
  );

  CREATE TABLE webhooks (
    name {text} NOT NULL,
    chain {text} NOT NULL,
    target {text} NOT NULL,
    state {text} NOT NULL,
    seen {int} NOT NULL,
    failing_since {int},
    failures {int} NOT NULL DEFAULT 0,
    not_before {int},
    last_error {text},
    sent {int} NOT NULL DEFAULT 0,
    dropped {int} NOT NULL DEFAULT 0,
    sent_at {int},
    PRIMARY KEY (name, chain)
  ) {clustered};

  CREATE TABLE webhook_outbox (
    webhook {text} NOT NULL,
    chain {text} NOT NULL,
    seq {int} NOT NULL,
    attempts {int} NOT NULL DEFAULT 0,
    PRIMARY KEY (webhook, chain, seq)
  ) {clustered};
  `,
  `
  ALTER TABLE tasks ADD COLUMN reviewer {text};
  CREATE INDEX tasks_under_review ON tasks (reviewer, id) WHERE reviewer IS NOT NULL;

  ALTER TABLE spending ADD COLUMN task {int};
  CREATE INDEX spending_of_task ON spending (task) WHERE task IS NOT NULL;
  `,
  `
  ALTER TABLE webhook_outbox RENAME TO webhook_queue;

  CREATE TABLE runs (
    id {key},
    daemon {text} NOT NULL,
    name {text} NOT NULL,
    state {text} NOT NULL,
    folder {text} NOT NULL,
    place {text} NOT NULL,
    started_by {text} NOT NULL,
    head {text} NOT NULL,
    plan {text} NOT NULL,
    created_at {int} NOT NULL,
    is_open {int} NOT NULL
  );
  CREATE INDEX runs_open ON runs (daemon, id) WHERE is_open = 1;

  CREATE TABLE run_nodes (
    run {int} NOT NULL,
    name {text} NOT NULL,
    document {text} NOT NULL,
    inbox {text},
    worktree {text},
    task {int},
    PRIMARY KEY (run, name)
  ) {clustered};

  ALTER TABLE audit ADD COLUMN run {int};
  CREATE INDEX audit_of_run ON audit (run, seq) WHERE run IS NOT NULL;

  CREATE INDEX human_requests_of_run ON human_requests (context) WHERE purpose = 'run';
  `,
  `
  ALTER TABLE tokens ADD COLUMN expires_at {int};
  `,
  `
  CREATE TABLE github_deliveries (
    id {text} PRIMARY KEY,
    event {text} NOT NULL,
    payload {text} NOT NULL,
    state {text} NOT NULL,
    attempts {int} NOT NULL DEFAULT 0,
    not_before {int} NOT NULL,
    received_at {int} NOT NULL,
    note {text}
  );
  CREATE INDEX github_deliveries_open ON github_deliveries (not_before, received_at) WHERE state = 'waiting';

  CREATE TABLE github_work (
    id {text} PRIMARY KEY,
    delivery {text} NOT NULL,
    role {text} NOT NULL,
    agent {text} NOT NULL,
    repository {text} NOT NULL,
    number {int},
    state {text} NOT NULL,
    task {int},
    after {text},
    needs {text} NOT NULL,
    delegation {text} NOT NULL,
    created_at {int} NOT NULL,
    ended_at {int}
  );
  CREATE INDEX github_work_open ON github_work (task) WHERE ended_at IS NULL;
  CREATE INDEX github_work_of_delivery ON github_work (delivery);

  CREATE TABLE github_actions (
    key {text} PRIMARY KEY,
    work {text} NOT NULL,
    agent {text} NOT NULL,
    repository {text} NOT NULL,
    number {int},
    action {text} NOT NULL,
    confidence DOUBLE PRECISION,
    rationale {text} NOT NULL,
    state {text} NOT NULL,
    request {int},
    attempts {int} NOT NULL DEFAULT 0,
    not_before {int} NOT NULL,
    url {text},
    note {text},
    created_at {int} NOT NULL,
    updated_at {int} NOT NULL
  );
  CREATE INDEX github_actions_open ON github_actions (not_before) WHERE state IN ('ready', 'acting');
  CREATE INDEX github_actions_of_thread ON github_actions (repository, number);

  CREATE TABLE github_standing (
    agent {text} PRIMARY KEY,
    failures {int} NOT NULL,
    halted_at {int}
  );

  CREATE TABLE github_documents (
    id {serial},
    repository {text} NOT NULL,
    kind {text} NOT NULL,
    number {int} NOT NULL,
    part {text} NOT NULL,
    title {text} NOT NULL,
    body {text} NOT NULL,
    author {text} NOT NULL,
    state {text} NOT NULL,
    updated_at {int} NOT NULL,
    UNIQUE (repository, number, part)
  );
  {github_search};
  `,
  `
  CREATE TABLE github_conduct (
    id {text} PRIMARY KEY,
    repository {text} NOT NULL,
    number {int},
    flag {text} NOT NULL,
    created_at {int} NOT NULL,
    closed_at {int},
    closed_by {text},
    comment {text}
  );
  `,
  `
  CREATE INDEX human_requests_of_task ON human_requests (context) WHERE state = 'open' AND purpose = 'task';
  `,
  `
  ALTER TABLE tasks ADD COLUMN interrupting {int} NOT NULL DEFAULT 0;
  UPDATE tasks SET interrupting = 1 WHERE document LIKE '%"interrupting":true%';
  CREATE INDEX tasks_interrupting ON tasks (id) WHERE interrupting = 1;
  DROP INDEX tasks_children;
  CREATE INDEX tasks_children ON tasks (parent, id) WHERE parent IS NOT NULL;
  CREATE INDEX tasks_at_work ON tasks (agent, id) WHERE state IN ('executing', 'blocked');
  CREATE INDEX audit_of_halts ON audit (chain, seq) WHERE type IN ('team.halted', 'team.resumed');

  ALTER TABLE human_requests ADD COLUMN topic {text};
  ALTER TABLE human_requests ADD COLUMN count {int} NOT NULL DEFAULT 1;
  CREATE INDEX human_requests_of_topic ON human_requests (topic) WHERE state = 'open' AND topic IS NOT NULL;
  `,
  `
  CREATE TABLE run_plans (
    run {int} PRIMARY KEY,
    plan {text} NOT NULL
  );
  INSERT INTO run_plans (run, plan) SELECT id, plan FROM runs;
  ALTER TABLE runs DROP COLUMN plan;

  CREATE TABLE run_agents (
    run {int} NOT NULL,
    name {text} NOT NULL,
    document {text} NOT NULL,
    inbox {text},
    worktree {text},
    task {int},
    PRIMARY KEY (run, name)
  );
  INSERT INTO run_agents (run, name, document, inbox, worktree, task)
    SELECT run, name, document, inbox, worktree, task FROM run_nodes;
  DROP TABLE run_nodes;
  `,
  `
  ALTER TABLE github_conduct ADD COLUMN decision {text};
  ALTER TABLE github_conduct ADD COLUMN told_at {int};
  ALTER TABLE github_work ADD COLUMN attempts {int} NOT NULL DEFAULT 0;
  `,
  `
  DROP INDEX github_deliveries_open;
  CREATE INDEX github_deliveries_open ON github_deliveries (received_at, id) WHERE state = 'waiting';
  `,
  `
  CREATE TABLE github_since (
    id {int} PRIMARY KEY,
    at {int} NOT NULL
  );
  `,
  `
  CREATE INDEX github_work_of_agent ON github_work (agent, state, ended_at);
  CREATE INDEX github_work_ended ON github_work (ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX github_actions_of_work ON github_actions (work);
  CREATE INDEX github_actions_of_agent ON github_actions (created_at);
  CREATE INDEX github_deliveries_received ON github_deliveries (received_at);
  `,
  `
  CREATE INDEX messages_of_thread ON messages (correlation, seq);
  `,
  `
  DROP INDEX tasks_of_root;
  CREATE INDEX tasks_below ON tasks (root, id) WHERE parent IS NOT NULL;

  ALTER TABLE tasks ADD COLUMN due_at {int};
  UPDATE tasks SET due_at = (
    SELECT MIN(t.due_at) FROM timers AS t
     WHERE t.kind IN ('task_ack', 'task_retry', 'task_deadline', 'task_validation', 'task_wait')
       AND t.ref = 'task_' || CAST(tasks.id AS TEXT)) WHERE ended_at IS NULL;
  DELETE FROM timers WHERE kind IN ('task_ack', 'task_retry', 'task_deadline', 'task_validation', 'task_wait');
  CREATE INDEX tasks_due ON tasks (due_at) WHERE due_at IS NOT NULL;
  `,
  `
  ALTER TABLE agents ADD COLUMN in_turn {int} NOT NULL DEFAULT 0;
  `,
  `
  ALTER TABLE twins RENAME TO channel_receipts;
  `,
]

/** The query for the highest key of each kind. Keys only grow, in the order of the commits. */
export const LAST_KEY: Record<IdKind, string> = {
  msg: 'SELECT MAX(seq) AS last FROM messages',
  req: 'SELECT MAX(id) AS last FROM human_requests',
  tok: 'SELECT MAX(id) AS last FROM tokens',
  task: 'SELECT MAX(id) AS last FROM tasks',
  run: 'SELECT MAX(id) AS last FROM runs',
}
