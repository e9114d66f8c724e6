select
    case when cardinality(array[${queue:sqlstring}]::text[]) > 1 then p.queue_name else '' end as "queue",
    s.state,
    floor(1000 * s.done_share) / 10 as "done",
    s.waiting as "left",
    s.rate_1m as "speed",
    s.seconds_left as "time left",
    1000 * extract(epoch from s.ends_at)::double precision as "ends at",
    s.need_somebody as "need an operator",
    p.migrated,
    p.kept,
    p.changed,
    p.deleted,
    p.missing,
    p.conflict,
    p.failed,
    p.batches_init as "INIT",
    p.batches_done as "DONE",
    p.batches_error as "ERROR"
from rowferry.migration_state as s
left join rowferry.progress as p
    on s.migration_id = p.migration_id and p.queue_name = any(array[${queue:sqlstring}]::text[])
where s.migration = ${migration:sqlstring}
order by p.started_at, p.queue_name
