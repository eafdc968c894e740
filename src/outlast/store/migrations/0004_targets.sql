-- breaking: yes
-- What a job's result is for: a target of the host's and the version of it that the job last saw, takeover, and parked results.

alter table {outlast.job} add column target_ref {text};
alter table {outlast.job} add column target_version {text};
alter table {outlast.job} add column attached_at {time};
alter table {outlast.job} add column taken_over_at {time};
alter table {outlast.output} add column parked {bool};
