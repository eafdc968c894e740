-- breaking: yes
-- The effect ledger: calls to the outside, and what became of them. A question of the owner's may be about one.

-- One row for what is meant to happen once: the root of a job's reruns, the task, the effect's name and its logical input.
-- job_id, no and fence are the claim whose intent it is.
create table {outlast.effect} (
  tenant {text} not null,
  effect_root {uuid} not null,
  label {text} not null,
  name {text} not null,
  input_hash {text} not null,
  job_id {uuid} not null,
  no {int} not null,
  fence {int} not null,
  provider_key {text} not null,
  state {text} not null,
  outcome {json},
  timeout_ms {int} not null,
  begun_at {time} not null,
  settled_at {time},
  primary key (tenant, effect_root, label, name, input_hash)
) {bodies};

alter table {outlast.attention} add column effect {text};
alter table {outlast.attention} add column effect_input {text};
