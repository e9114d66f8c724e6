-- Whatever of a migration was neither migrated nor kept, so that its lines add up to the account: one line an entry;
-- and one a range where a batch waits, is parked (set to ERROR by hand), or failed before its entries had outcomes of their own.
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
    where q.status = 'ERROR' and q.failed > listed.failed
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
    -- What a batch has failed so far counts once it has ended, or somebody has set it to ERROR.
    cross join lateral (
        select
            q.entry_count - q.migrated - q.kept - q.changed - q.deleted
            - case when q.status = 'INIT' then 0 else q.missing + q.conflict + q.failed end as entries
    ) as w
    where q.status in ('INIT', 'ERROR') and w.entries > 0
)

select *
from lines
order by queue, entries_of, batch, id
