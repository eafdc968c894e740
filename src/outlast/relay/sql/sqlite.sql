-- SQLite 3.31 or later. One row asks for one job; `outlast relay --from` moves it into the store and deletes it here.
-- Write a row in your own transaction, with parameters; what jobs.outbox_row(...) returns are these columns:
--
--     insert into {table} (tenant, owner, kind, input) values ('acme', 'ann', 'report', '{"month": "2026-11"}');
--
-- Never change a row. The id is the job's idempotency key: leave it to the default, or give one that is never used again.
create table if not exists {table} (
    seq integer primary key autoincrement,
    id text not null unique default (lower(hex(randomblob(16)))),
    tenant text not null,
    owner text not null,
    roles text,                 -- of the owner: a JSON array of texts
    claims text,                -- of the owner, for kinds that keep some: a JSON object of texts
    kind text not null,
    version integer,            -- of the kind, that the input is of; null: the present one
    input text not null,        -- JSON
    target_ref text,
    target_version text,
    unique_key text,
    unique_policy text,         -- existing, reject or replace
    not_before integer,         -- milliseconds since 1970; no task starts earlier
    correlation_id text,
    created_at integer not null default (cast((julianday('now') - 2440587.5) * 86400000 as integer))
        check (typeof(created_at) = 'integer'),
    -- the relay's:
    code text,                  -- why it was not moved
    detail text,               -- where that is: a column, or JSON pointers into the input
    tries integer not null default 0 check (typeof(tries) = 'integer'),
    due_at integer check (typeof(due_at) in ('integer', 'null')),       -- when it is tried again
    parked_at integer check (typeof(parked_at) in ('integer', 'null'))  -- since when it is not tried any more
);
