-- rowferry.error_reasons
--   Why batches are in ERROR: one row a migration, queue, outcome and reason; `order by entries desc` returns the most
--   frequent first. A batch that stopped before its entries were read counts under its own error. A batch that was set
--   to ERROR by hand, and not by an attempt, is `parked`, a finished one as well. `pattern` is what rowferry.requeue and `rowferry requeue
--   --error-like` take to match this reason alone; null where no reason was recorded. `takes_on_conflict`: another try
--   would end alike, unless `rowferry requeue --on-conflict` says what to do with the production object. `repair`: what
--   to type to repair what `rowferry verify` found; null where only the cause can be fixed.
create or replace view rowferry.error_reasons as
with reasons as (
    select
        q.migration_id,
        q.queue_name,
        q.id as batch_id,
        q.payload ? 'on_conflict' as knows_choice,
        f.outcome,
        f.reason,
        f.key,
        f.error,
        f.failed_at,
        1 as entries
    from rowferry.batch_queue as q
    inner join rowferry.entry_failure as f on q.id = f.batch_id
    where q.status = 'ERROR' and f.outcome in ('missing', 'conflict', 'failed')
    union all
    select
        q.migration_id,
        q.queue_name,
        q.id as batch_id,
        q.payload ? 'on_conflict' as knows_choice,
        'failed' as outcome,
        q.error as reason,
        null as key,
        q.error,
        q.finished_at as failed_at,
        q.failed - listed.failed as entries
    from rowferry.batch_queue as q
    cross join lateral (
        select count(*) as failed
        from rowferry.entry_failure as f
        where f.batch_id = q.id and f.outcome = 'failed'
    ) as listed
    where q.status = 'ERROR' and (q.failed > listed.failed or (q.entry_count = 0 and q.finished_at is not null))
    union all
    select
        q.migration_id,
        q.queue_name,
        q.id as batch_id,
        q.payload ? 'on_conflict' as knows_choice,
        'parked' as outcome,
        'set to ERROR by hand; `rowferry requeue` puts it back' as reason,
        null as key,
        q.error,
        coalesce(q.started_at, q.created_at) as failed_at,
        q.entry_count - q.migrated - q.kept - q.changed - q.deleted - q.missing - q.conflict - q.failed as entries
    from rowferry.batch_queue as q
    where
        q.status = 'ERROR'
        and (q.finished_at is null or (q.entry_count > 0 and q.missing + q.conflict + q.failed = 0))
)

select
    m.name as migration,
    r.queue_name,
    r.outcome,
    r.reason,
    sum(r.entries)::bigint as entries,
    count(distinct r.batch_id) as batches,
    (min(array[r.key, r.error]))[1] as example_key,
    (min(array[r.key, r.error]))[2] as example_error,
    max(r.failed_at) as last_failed_at,
    regexp_replace(r.reason, '([\\%_])', '\\\1', 'g') as pattern,
    bool_and(r.knows_choice)
    and (r.outcome = 'conflict' or r.reason is not distinct from 'NotEncrypted') as takes_on_conflict,
    case
        when r.reason in ('LegacyIsNewer', 'NoProductionObject') then 'rowferry verify --repair'
        when r.reason in ('ProductionIsNewer', 'PropertiesDiffer', 'WrittenTogether')
            then 'rowferry verify --repair --overwrite'
    end as repair
from reasons as r
inner join rowferry.migration as m on r.migration_id = m.id
group by m.name, r.queue_name, r.outcome, r.reason;
