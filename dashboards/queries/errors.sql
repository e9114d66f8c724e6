select
    queue_name as "queue",
    outcome,
    reason,
    entries,
    batches,
    left(example_key, 200) as "for example",
    last_failed_at as "last",
    format(
        'update rowferry.batch_queue as q set status = ''INIT'' where q.status = ''ERROR'' and q.queue_name = %L '
        'and q.migration_id = (select id from rowferry.migration where name = %L) and (q.error = %L or exists '
        '(select from rowferry.entry_failure as f where f.batch_id = q.id and f.outcome = %L and f.reason = %L));',
        queue_name, migration, reason, outcome, reason
    ) as "SQL to requeue them"
from rowferry.error_reasons
where migration = ${migration:sqlstring} and queue_name in (${queue:sqlstring})
order by entries desc
limit 50
