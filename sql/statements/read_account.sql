-- The account of a migration: one row a queue and table, its batches, entries by outcome, attempts, bytes and times.
-- The attempts are read from the whole ledger; `account_settings` says how.
with tried as (
    select
        q.queue_name,
        q.payload ->> 'entries' as label,
        count(*) as attempts
    from rowferry.batch_attempt as a
    inner join rowferry.batch_queue as q on a.batch_id = q.id
    where q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
    group by q.queue_name, q.payload ->> 'entries'
),

-- Batches that somebody has set to ERROR by hand: an attempt that ends so leaves no entry without an outcome.
parked as (
    select
        q.queue_name,
        q.payload ->> 'entries' as label,
        count(*) as batches,
        sum(w.entries)::bigint as entries
    from rowferry.batch_queue as q
    cross join lateral (
        select
            q.entry_count - q.migrated - q.kept - q.changed - q.deleted - q.missing - q.conflict - q.failed as entries
    ) as w
    where
        q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
        and q.status = 'ERROR'
        and w.entries > 0
    group by q.queue_name, q.payload ->> 'entries'
)

select
    p.queue_name,
    p.label,
    p.batches,
    p.batches_init,
    p.batches_done,
    p.batches_error,
    p.entries,
    p.waiting,
    p.migrated,
    p.kept,
    p.changed,
    p.deleted,
    p.missing,
    p.conflict,
    p.failed,
    p.bytes,
    coalesce(t.attempts, 0) as attempts,
    p.started_at,
    p.finished_at,
    coalesce(h.batches, 0) as parked_batches,
    coalesce(h.entries, 0) as parked_entries
from rowferry.table_progress as p
left join tried as t on p.queue_name = t.queue_name and p.label = t.label
left join parked as h on p.queue_name = h.queue_name and p.label = h.label
where p.migration = %(migration)s
order by p.queue_name, p.label
