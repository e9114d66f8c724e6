-- Puts one batch a chunk in the queue, and returns how many and of how many entries.
with inserted as (
    insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts)
    select
        %(migration_id)s,
        %(queue)s,
        jsonb_build_object('entries', %(label)s::text, 'first', c.first, 'last', c.last) || %(choices)s::jsonb,
        c.entry_count,
        %(max_attempts)s
    from ({chunks}) as c
    order by c.stretch, c.chunk
    returning entry_count
)

select
    count(*) as batches,
    coalesce(sum(i.entry_count), 0)::bigint as entries
from inserted as i
