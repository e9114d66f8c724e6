select
    outcome,
    reason,
    entries,
    batches,
    coalesce(example_key, '') as example_key,
    last_failed_at
from rowferry.error_reasons
where migration = %(migration)s
order by last_failed_at desc, entries desc
limit 50
