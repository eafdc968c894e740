-- breaking: yes
-- What is left of a job that was purged: its key goes on answering until the horizon is over. An older version would take such a key's
-- job for one that waits.

alter table {outlast.submission} add column expires_at {time};
alter table {outlast.submission} add column final_state {text};
alter table {outlast.submission} add column outcome {text};
alter table {outlast.submission} add column finished_at {time};
alter table {outlast.submission} add column purged_at {time};

create index {index.submission_expires} on {outlast.submission} (expires_at) where expires_at is not null;

-- Whether another job has the same effects: asked before they are deleted. Neither column is ever updated.
create index {index.job_root} on {outlast.job} (tenant, effect_root) where rerun_of is not null;

-- How many jobs an action took away.
alter table {outlast.audit} add column jobs {int};
