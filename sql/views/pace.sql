-- rowferry.pace
--   The pace of the last ten minutes, for the time left: one row a migration and queue that finished a batch in them, in
--   entries a second. Of a queue that began later, or a migration of which anything was resumed later, the time since
--   then. Reads only the index of finished batches.
create or replace view rowferry.pace as
with bounds as (
    select
        m.id as migration_id,
        greatest(now() - interval '10 minutes', max(e.at)) as since
    from rowferry.migration as m
    left join rowferry.event as e
        on m.id = e.migration_id and e.kind = 'resumed' and e.at > now() - interval '10 minutes'
    group by m.id
)

select
    q.migration_id,
    q.queue_name,
    sum(q.entry_count)::bigint as entries,
    (
        sum(q.entry_count)
        / extract(epoch from greatest(now() - greatest(min(q.started_at), min(b.since)), interval '1 second'))
    )::double precision as pace
from rowferry.batch_queue as q
inner join bounds as b on q.migration_id = b.migration_id
where q.finished_at > now() - interval '10 minutes' and q.finished_at > b.since
group by q.migration_id, q.queue_name;
