-- breaking: yes
-- One active job per unique key, questions with the shape of their answer, and the record of what operators did.

alter table {outlast.job} add column active_scope {text};
alter table {outlast.job} add column active_key {text};

-- The key goes with the final update, which therefore is no HOT one for a job that has a key; for all others it stays null.
create unique index {index.job_active} on {outlast.job} (tenant, active_scope, active_key) where active_key is not null;

alter table {outlast.attention} add column input_schema {json};

create table {outlast.audit} (
  id {uuid} not null,
  tenant {text} not null,
  at {time} not null,
  actor {text} not null,
  action {text} not null,
  subject {text} not null,
  reason {text} not null,
  primary key (id)
) {keyed:100};
