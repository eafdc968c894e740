-- MariaDB 10.6 or later, InnoDB. One row asks for one job; `outlast relay --from` moves it into the store and deletes it here.
-- Write a row in your own transaction, with parameters; what jobs.outbox_row(...) returns are these columns:
--
--     insert into {table} (tenant, owner, kind, input) values ('acme', 'ann', 'report', '{"month": "2026-11"}');
--
-- Never change a row. The id is the job's idempotency key: leave it to the default, or give one that is never used again.
create table if not exists {table} (
    seq bigint not null auto_increment primary key,
    id varchar(255) not null default (uuid()),
    tenant varchar(200) not null,
    owner varchar(200) not null,
    roles mediumtext,           -- of the owner: a JSON array of texts
    claims mediumtext,          -- of the owner, for kinds that keep some: a JSON object of texts
    kind varchar(200) not null,
    version integer,            -- of the kind, that the input is of; null: the present one
    input longtext not null,    -- JSON
    target_ref varchar(500),
    target_version varchar(200),
    unique_key varchar(255),
    unique_policy varchar(16),  -- existing, reject or replace
    not_before bigint,          -- milliseconds since 1970; no task starts earlier
    correlation_id varchar(200),
    created_at bigint not null default (timestampdiff(microsecond, '1970-01-01', utc_timestamp(3)) div 1000),
    -- the relay's:
    code varchar(64),           -- why it was not moved
    detail varchar(2000),       -- where that is: a column, or JSON pointers into the input
    tries integer not null default 0,
    due_at bigint,              -- when it is tried again
    parked_at bigint,           -- since when it is not tried any more
    constraint unique (id)
) engine = innodb, character set utf8mb4, collate utf8mb4_bin;
