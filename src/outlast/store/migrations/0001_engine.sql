-- breaking: yes
-- The engine's tables. Types and table options are tokens, one text for both dialects.
-- No foreign keys: integrity is by construction, each set of rows in one transaction.

create table {outlast.job} (
  tenant {text} not null,
  id {uuid} not null,
  owner {text} not null,
  kind {text} not null,
  schema_version {int} not null,
  label {text} not null,
  state {text} not null,
  outcome {text},
  version {int} not null,
  total {int} not null,
  open {int} not null,
  required_open {int} not null,
  attention {int} not null,
  problems {int} not null,
  usable_marked {bool} not null,
  accepted_at {time} not null,
  usable_at {time},
  usable_ref {text},
  finished_at {time},
  cancelled_at {time},
  cancelled_by {text},
  rerun_of {uuid},
  effect_root {uuid} not null,
  correlation_id {text} not null,
  traceparent {text},
  purge_at {time},
  primary key (tenant, id)
) {keyed:50};

-- No index of job may name a column that the final update writes, else no final update is HOT.
create index {index.job_owner} on {outlast.job} (tenant, owner, id desc);
create index {index.job_id} on {outlast.job} (id);

create table {outlast.job_input} (
  tenant {text} not null,
  job_id {uuid} not null,
  input {json} not null,
  caller {json} not null,
  primary key (tenant, job_id)
) {bodies};

create table {outlast.task} (
  tenant {text} not null,
  job_id {uuid} not null,
  no {int} not null,
  label {text} not null,
  handler {text} not null,
  queue {text} not null,
  priority {int} not null,
  required {bool} not null,
  usable {bool} not null,
  state {text} not null,
  deps_left {int} not null,
  fence {int} not null,
  spent {int} not null,
  max_attempts {int} not null,
  base_ms {int} not null,
  cap_ms {int} not null,
  window_ms {int} not null,
  deadline_ms {int} not null,
  item {json},
  code {text},
  not_before {time},
  started_at {time},
  finished_at {time},
  worker {text},
  primary key (tenant, job_id, no)
) {keyed:50};

-- A row exactly while a task waits to run, waits to retry, or runs. A claim or renewal must stay a HOT update: no index,
-- column or predicate, may name holder, lease_until, fence, deadline_at or revoked.
create table {outlast.queue_entry} (
  tenant {text} not null,
  job_id {uuid} not null,
  no {int} not null,
  queue {text} not null,
  priority {int} not null,
  handler {text} not null,
  ready_at {time},
  due_at {time},
  fence {int} not null,
  spent {int} not null,
  first_failed_at {time},
  holder {text},
  claimed_at {time},
  lease_until {time},
  deadline_at {time},
  deadline_ms {int} not null,
  revoked {bool} not null,
  code {text},
  progress {text},
  primary key (tenant, job_id, no)
) {keyed:40};

create index {index.entry_claim} on {outlast.queue_entry} (queue, priority, ready_at, tenant, job_id, no) where ready_at is not null;
create index {index.entry_due} on {outlast.queue_entry} (due_at) where ready_at is null and due_at is not null;

-- soft: the child is required and the parent optional, so that any end of the parent satisfies it.
create table {outlast.edge} (
  tenant {text} not null,
  job_id {uuid} not null,
  parent {int} not null,
  child {int} not null,
  soft {bool} not null,
  primary key (tenant, job_id, parent, child)
) {keyed:100};

create table {outlast.output} (
  tenant {text} not null,
  job_id {uuid} not null,
  no {int} not null,
  body {json} not null,
  ref {text},
  primary key (tenant, job_id, no)
) {bodies};

create table {outlast.attempt} (
  tenant {text} not null,
  job_id {uuid} not null,
  no {int} not null,
  fence {int} not null,
  number {int} not null,
  worker {text} not null,
  started_at {time},
  ended_at {time} not null,
  code {text} not null,
  detail {text},
  primary key (tenant, job_id, no, fence)
) {keyed:100};

create table {outlast.step} (
  tenant {text} not null,
  job_id {uuid} not null,
  no {int} not null,
  name {text} not null,
  fence {int} not null,
  body {json} not null,
  primary key (tenant, job_id, no, name)
) {bodies};

create table {outlast.attention} (
  tenant {text} not null,
  job_id {uuid} not null,
  id {text} not null,
  no {int} not null,
  code {text} not null,
  message {text} not null,
  actions {text} not null,
  raised_at {time} not null,
  until {time} not null,
  resolved_at {time},
  action {text},
  actor {text},
  request_hash {text},
  primary key (tenant, job_id, id)
) {keyed:100};

create index {index.attention_until} on {outlast.attention} (until) where resolved_at is null;
create unique index {index.attention_open} on {outlast.attention} (tenant, job_id, no) where resolved_at is null;

create table {outlast.submission} (
  tenant {text} not null,
  owner {text} not null,
  key {text} not null,
  fingerprint {text} not null,
  job_id {uuid} not null,
  primary key (tenant, owner, key)
) {keyed:100};

create index {index.submission_job} on {outlast.submission} (tenant, job_id);

create table {outlast.queue} (
  name {text} not null,
  paused_at {time},
  paused_by {text},
  reason {text},
  primary key (name)
) {keyed:100};
