with pauses as (
    select
        p.at,
        p.text,
        (
            select min(r.at)
            from rowferry.events as r
            where
                r.kind = 'resumed'
                and r.at >= p.at
                and r.migration = p.migration
                and r.queue_name is not distinct from p.queue_name
        ) as resumed_at
    from rowferry.events as p
    where p.kind = 'paused' and p.migration = ${migration:sqlstring}
)

select
    at as "time",
    coalesce(resumed_at, now()) as "timeend",
    text,
    'paused' as tags
from pauses
where at <= $__timeTo() and coalesce(resumed_at, now()) >= $__timeFrom()
order by at
limit 100
