-- Whatever of a migration was neither migrated nor kept, so that its lines add up to the account: one line an entry;
-- and one a range where a batch waits, or failed before its entries had outcomes of their own.
with lines as (
    select
        q.id as batch_id,
        null as first,
        null as last,
        f.entry_id,
        f.key,
        1 as entries,
        f.outcome,
        f.reason,
        f.error,
        f.attempt,
        f.failed_at
    from rowferry.batch_queue as q
    inner join rowferry.entry_failure as f on q.id = f.batch_id
    where q.status <> 'INIT' or f.outcome in ('changed', 'vanished')
    union all
    select
        q.id as batch_id,
        q.payload ->> 'first' as first,
        q.payload ->> 'last' as last,
        null as entry_id,
        null as key,
        q.failed - listed.failed as entries,
        'failed' as outcome,
        null as reason,
        q.error,
        q.attempts as attempt,
        q.finished_at as failed_at
    from rowferry.batch_queue as q
    cross join lateral (
        select count(*) as failed
        from rowferry.entry_failure as f
        where f.batch_id = q.id and f.outcome = 'failed'
    ) as listed
    where q.status = 'ERROR' and q.failed > listed.failed
    union all
    select
        q.id as batch_id,
        q.payload ->> 'first' as first,
        q.payload ->> 'last' as last,
        null as entry_id,
        null as key,
        q.entry_count - q.migrated - q.kept - q.changed - q.vanished as entries,
        'waiting' as outcome,
        null as reason,
        q.error,
        q.attempts as attempt,
        null as failed_at
    from rowferry.batch_queue as q
    where q.status = 'INIT' and q.entry_count > q.migrated + q.kept + q.changed + q.vanished
)

select
    q.queue_name as queue,
    q.payload ->> 'entries' as entries_of,
    l.batch_id as batch,
    q.status,
    l.first,
    l.last,
    l.entry_id as id,
    l.key,
    l.entries,
    l.outcome,
    l.reason,
    l.error,
    l.attempt,
    l.failed_at
from lines as l
inner join rowferry.batch_queue as q on l.batch_id = q.id
where q.migration_id = (select m.id from rowferry.migration as m where m.name = %(migration)s)
order by q.queue_name, q.payload ->> 'entries', l.batch_id, l.entry_id
