-- rowferry.error_reasons
--   Why batches are in ERROR: one row a migration, queue, outcome and reason; `order by entries desc` returns the most
--   frequent first. A batch that stopped before its entries were read counts under its own error. A batch that was set
--   to ERROR by hand, and not by an attempt, is `parked`, a finished one as well. `example_key` and `example_error` are
--   of the entry that failed last, at `last_failed_at`; it may have been requeued since. `pattern` is what
--   rowferry.requeue and `rowferry requeue --error-like` take to match this reason alone; null where no reason was
--   recorded. `takes_on_conflict`: another try would end alike, unless `rowferry requeue --on-conflict` says what to do
--   with the production object. `repair`: what to type to repair what `rowferry verify` found; null where only the cause
--   can be fixed. Reads the tally of reasons, some hundred rows, not the failures.
create or replace view rowferry.error_reasons as
with reasons as (
    select
        t.migration_id,
        t.queue_name,
        t.outcome,
        t.reason,
        sum(t.entries)::bigint as entries,
        sum(t.batches)::bigint as batches,
        sum(t.choosing)::bigint as choosing,
        max(t.last_failed_at) as last_failed_at,
        (array_agg(t.example_key order by t.last_failed_at desc nulls last, t.id desc))[1] as example_key,
        (array_agg(t.example_error order by t.last_failed_at desc nulls last, t.id desc))[1] as example_error
    from rowferry.reason_tally as t
    group by t.migration_id, t.queue_name, t.outcome, t.reason
    having sum(t.batches) > 0
)

select
    m.name as migration,
    r.queue_name,
    r.outcome,
    r.reason,
    r.entries,
    r.batches,
    r.example_key,
    r.example_error,
    r.last_failed_at,
    regexp_replace(r.reason, '([\\%_])', '\\\1', 'g') as pattern,
    r.choosing = r.batches
    and (r.outcome = 'conflict' or r.reason is not distinct from 'NotEncrypted') as takes_on_conflict,
    case
        when r.reason in ('LegacyIsNewer', 'NoProductionObject') then 'rowferry verify --repair'
        when r.reason in ('ProductionIsNewer', 'PropertiesDiffer', 'WrittenTogether')
            then 'rowferry verify --repair --overwrite'
    end as repair
from reasons as r
inner join rowferry.migration as m on r.migration_id = m.id;
