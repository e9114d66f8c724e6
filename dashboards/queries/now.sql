-- The state with its age, as one text: a value mapping takes them apart again, in one colour.
select
    s.state,
    s.state || ' ' || case
        when now() - s.since < interval '30 seconds' then 'just now'
        when now() - s.since < interval '2 hours' then format('for %s min', round(extract(epoch from now() - s.since) / 60))
        when now() - s.since < interval '2 days' then format('for %s h', round(extract(epoch from now() - s.since) / 3600))
        else format('for %s days', round(extract(epoch from now() - s.since) / 86400))
    end as "since",
    floor(1000 * s.done_share) / 10 as "done",
    s.waiting as "left",
    s.rate_1m as "speed",
    s.seconds_left as "time left",
    1000 * extract(epoch from s.ends_at)::double precision as "ends at",
    s.needs_operator as "need an operator",
    p.*
from rowferry.migration_state as s
cross join (
    select
        sum(migrated)::bigint as migrated,
        sum(kept)::bigint as kept,
        sum(changed)::bigint as changed,
        sum(deleted)::bigint as deleted,
        sum(missing)::bigint as missing,
        sum(conflict)::bigint as conflict,
        sum(failed)::bigint as failed,
        sum(batches_init)::bigint as "INIT",
        sum(batches_done)::bigint as "DONE",
        sum(batches_error)::bigint as "ERROR"
    from rowferry.progress
    where migration = ${migration:sqlstring} and queue_name = any(array[${queue:sqlstring}]::text[])
) as p
where s.migration = ${migration:sqlstring}
