-- `rowferry report`: what became of every entry.

-- name: read_report
-- One row a queue and table: its batches, entries by outcome, attempts, bytes and times. `parked`: entries of batches
-- that were set to ERROR by hand; `needs_operator`: these, and those that are missing, conflict or failed; `duration`:
-- null where the clock was set back; `balances`: whether entries are the sum of their outcomes. Reads all attempts of
-- the ledger, in the order of the indexes.
with tried as (
    select
        q.queue_name,
        q.payload ->> 'entries' as label,
        count(*) as attempts,
        bool_or(q.payload ? 'again' or (q.payload ->> 'pass')::integer > 1) as is_repeated
    from rowferry.batch_attempt as a
    inner join rowferry.batch_queue as q on a.batch_id = q.id
    where q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
    group by q.queue_name, q.payload ->> 'entries'
),

-- Batches that were set to ERROR by hand: an attempt that ends in ERROR leaves no entry without an outcome.
parked as (
    select
        q.queue_name,
        q.payload ->> 'entries' as label,
        sum((rowferry.count_batch(q, 1)).waiting)::bigint as entries
    from rowferry.batch_queue as q
    where
        q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
        and q.status = 'ERROR'
        and (rowferry.count_batch(q, 1)).waiting > 0
    group by q.queue_name, q.payload ->> 'entries'
)

select
    p.queue_name as queue,
    p.label,
    p.batches,
    p.batches_init,
    p.batches_done,
    p.batches_error,
    p.entries,
    p.waiting - coalesce(h.entries, 0) as waiting,
    coalesce(h.entries, 0) as parked,
    p.migrated,
    p.kept,
    p.changed,
    p.deleted,
    p.missing,
    p.conflict,
    p.failed,
    p.entries - p.waiting - p.unsettled as settled,
    p.unsettled + coalesce(h.entries, 0) as needs_operator,
    p.bytes,
    coalesce(t.attempts, 0) as attempts,
    coalesce(t.is_repeated, false) as is_repeated,
    p.started_at,
    p.finished_at,
    case when p.finished_at >= p.started_at then p.finished_at - p.started_at end as duration,
    p.waiting >= coalesce(h.entries, 0) as balances
from rowferry.table_progress as p
left join tried as t on p.queue_name = t.queue_name and p.label = t.label
left join parked as h on p.queue_name = h.queue_name and p.label = h.label
where p.migration = %(migration)s
order by p.queue_name, p.label;

-- name: read_manifest
-- The entries that were neither migrated nor kept, so that its lines add up to the report: one line an entry; and one a
-- range for each batch that waits, is parked (set to ERROR by hand), or failed before its entries had outcomes. A
-- listing that waits or failed has a line with 0 entries.
with mine as not materialized (
    select q.*
    from rowferry.batch_queue as q
    where q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
),

lines as (
    select
        q.queue_name as queue,
        q.payload ->> 'entries' as entries_of,
        q.id as batch,
        q.status,
        null as first,
        null as last,
        f.entry_id as id,
        f.key,
        1 as entries,
        f.outcome,
        f.reason,
        f.error,
        f.attempt,
        f.failed_at
    from mine as q
    inner join rowferry.entry_failure as f on q.id = f.batch_id
    where q.status <> 'INIT' or f.outcome in ('changed', 'deleted')
    union all
    select
        q.queue_name as queue,
        q.payload ->> 'entries' as entries_of,
        q.id as batch,
        q.status,
        q.payload ->> 'first' as first,
        q.payload ->> 'last' as last,
        null as id,
        null as key,
        q.failed - listed.failed as entries,
        'failed' as outcome,
        null as reason,
        q.error,
        q.attempts as attempt,
        q.finished_at as failed_at
    from mine as q
    cross join lateral (
        select count(*) as failed
        from rowferry.entry_failure as f
        where f.batch_id = q.id and f.outcome = 'failed'
    ) as listed
    where q.status = 'ERROR' and (q.failed > listed.failed or q.payload ->> 'objects' = 'listing')
    union all
    select
        q.queue_name as queue,
        q.payload ->> 'entries' as entries_of,
        q.id as batch,
        q.status,
        q.payload ->> 'first' as first,
        q.payload ->> 'last' as last,
        null as id,
        null as key,
        w.entries,
        case q.status when 'ERROR' then 'parked' else 'waiting' end as outcome,
        case q.status when 'ERROR' then 'set to ERROR by hand; `rowferry requeue` puts it back' end as reason,
        q.error,
        q.attempts as attempt,
        null as failed_at
    from mine as q
    cross join lateral (select (rowferry.count_batch(row(q.*)::rowferry.batch_queue, 1)).waiting as entries) as w
    where
        (q.status in ('INIT', 'ERROR') and w.entries > 0)
        or (q.status = 'INIT' and q.payload ->> 'objects' = 'listing')
)

select *
from lines
order by queue, entries_of, batch, id;
