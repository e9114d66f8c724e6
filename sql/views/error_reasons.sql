-- Why batches are in ERROR, per migration, queue, outcome and reason; `order by entries desc` returns the most
-- frequent first. A batch that stopped before its entries were read counts under its own error. A batch that was set
-- to ERROR by hand, and not by an attempt, is `parked`, a finished one as well. `example_key` and `example_error` are
-- of the first key of the batch that failed last, at `last_failed_at`; without a key, of that batch. `pattern` is
-- what rowferry.requeue and `rowferry requeue --error-like` take to match this reason alone; null where no reason was
-- recorded. `takes_on_conflict`: another try would end alike, unless `rowferry requeue --on-conflict` says what to do
-- with the production object. `repair`: what to type to repair what `rowferry verify` found; null where only the cause
-- can be fixed. Counts all failures: 0.3 s of CPU for a million of them.
create or replace view rowferry.error_reasons as
with listed as (
    select
        f.batch_id,
        f.outcome,
        f.reason,
        count(*) as entries,
        max(f.failed_at) as last_failed_at
    from rowferry.entry_failure as f
    where f.outcome in ('missing', 'conflict', 'failed')
    group by f.batch_id, f.outcome, f.reason
),

stopped as (
    select
        q.id,
        q.migration_id,
        q.queue_name,
        q.payload ? 'on_conflict' as can_choose,
        q.error,
        q.finished_at,
        coalesce(q.started_at, q.created_at) as tried_at,
        q.failed - coalesce(l.failed, 0) as unlisted,
        (rowferry.count_batch(q, 1)).waiting as untried,
        q.finished_at is not null and q.entry_count = 0 as is_without_entries,
        q.finished_at is null or (q.entry_count > 0 and q.missing + q.conflict + q.failed = 0) as is_parked
    from rowferry.batch_queue as q
    left join (
        select
            o.batch_id,
            sum(o.entries) filter (where o.outcome = 'failed') as failed
        from listed as o
        group by o.batch_id
    ) as l on q.id = l.batch_id
    where q.status = 'ERROR'
),

reasons as (
    select
        s.*,
        l.outcome,
        l.reason,
        l.entries,
        l.last_failed_at
    from stopped as s
    inner join listed as l on s.id = l.batch_id
    union all
    select
        s.*,
        'failed' as outcome,
        s.error as reason,
        s.unlisted as entries,
        s.finished_at as last_failed_at
    from stopped as s
    where s.unlisted > 0 or s.is_without_entries
    union all
    select
        s.*,
        'parked' as outcome,
        'set to ERROR by hand; `rowferry requeue` puts it back' as reason,
        s.untried as entries,
        s.tried_at as last_failed_at
    from stopped as s
    where s.is_parked
),

grouped as (
    select
        r.migration_id,
        r.queue_name,
        r.outcome,
        r.reason,
        sum(r.entries)::bigint as entries,
        count(*) as batches,
        bool_and(r.can_choose) as can_choose,
        max(r.last_failed_at) as last_failed_at,
        (array_agg(r.id order by r.last_failed_at desc nulls last, r.id desc))[1] as batch_id
    from reasons as r
    group by r.migration_id, r.queue_name, r.outcome, r.reason
)

select
    m.name as migration,
    g.queue_name,
    g.outcome,
    g.reason,
    g.entries,
    g.batches,
    e.key as example_key,
    case when e.key is null then q.error else e.error end as example_error,
    g.last_failed_at,
    regexp_replace(g.reason, '([\\%_])', '\\\1', 'g') as pattern,
    g.can_choose and (g.outcome = 'conflict' or g.reason is not distinct from 'NotEncrypted') as takes_on_conflict,
    case
        when g.reason in ('LegacyIsNewer', 'NoProductionObject') then 'rowferry verify --repair'
        when g.reason in ('ProductionIsNewer', 'PropertiesDiffer', 'WrittenTogether')
            then 'rowferry verify --repair --overwrite'
    end as repair
from grouped as g
inner join rowferry.migration as m on g.migration_id = m.id
inner join rowferry.batch_queue as q on g.batch_id = q.id
left join lateral (
    select
        f.key,
        f.error
    from rowferry.entry_failure as f
    where f.batch_id = g.batch_id and f.outcome = g.outcome and f.reason = g.reason
    order by f.key
    limit 1
) as e on true;
