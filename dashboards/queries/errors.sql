select
    queue_name as "queue",
    outcome,
    reason,
    entries,
    batches,
    last_failed_at as "last",
    left(example_key, 200) as "for example",
    case
        when repair is not null then 'look at both objects: this copies the legacy object again'
        when takes_on_conflict then 'choose: keep the production object, or write overwrite to replace it'
        when outcome = 'missing' then 'restore the object, or correct the row'
        when outcome = 'conflict' then 'look at both objects'
        when outcome = 'parked' then 'find out who set it to ERROR, and why'
        else 'mend what the reason says'
    end as "first",
    case
        when repair is not null then repair
        when error_reasons.pattern is null
            then format('rowferry requeue --all --queue %s --migration %s', quoted.queue, quoted.migration)
        else format(
            'rowferry requeue --error-like %s --queue %s --migration %s', quoted.pattern, quoted.queue, quoted.migration
        )
    end || case when takes_on_conflict then ' --on-conflict keep' else '' end as "then type this"
from rowferry.error_reasons
-- Quoted for a shell.
cross join lateral (
    select
        '''' || replace(migration, '''', '''\''''') || '''' as migration,
        case
            when queue_name ~ '[^a-z0-9_]' then '''' || replace(queue_name, '''', '''\''''') || ''''
            else queue_name
        end as queue,
        '''' || replace(pattern, '''', '''\''''') || '''' as pattern
) as quoted
where
    error_reasons.migration = ${migration:sqlstring}
    and queue_name = any(array[${queue:sqlstring}]::text[])
order by entries desc
limit 50
