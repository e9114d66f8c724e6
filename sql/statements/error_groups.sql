-- Why batches are in ERROR: one row a reason, those with the most entries first.
select
    e.migration,
    e.queue_name,
    e.outcome,
    e.reason,
    e.entries,
    e.batches,
    e.example_key,
    e.example_error,
    e.last_failed_at,
    count(*) over () as total
from rowferry.error_reasons as e
where %(migration)s::text is null or e.migration = %(migration)s
order by e.entries desc, e.migration, e.outcome, e.reason
limit %(limit)s
