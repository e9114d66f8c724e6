-- The rate of the last ten minutes, for the time left: per migration and queue that finished a batch in them, or
-- settled entries inside one (rowferry.in_hand), in entries a second. For a queue that began, or a migration that was
-- resumed, later: the time since then. The time since something last moved counts only from 15
-- seconds on: for so long the batches of a dead worker may wait for its silence. Reads only the index of finished
-- batches, and what workers have claimed.
create or replace view rowferry.rate_10m as
with bounds as (
    select
        m.id as migration_id,
        greatest(now() - interval '10 minutes', max(e.at)) as since
    from rowferry.migration as m
    left join rowferry.event as e
        on m.id = e.migration_id and e.kind = 'resumed' and e.at > now() - interval '10 minutes'
    group by m.id
),

moved as (
    select
        q.migration_id,
        q.queue_name,
        sum(q.entry_count) as entries,
        min(q.started_at) as started_at,
        max(q.finished_at) as moved_at
    from rowferry.batch_queue as q
    inner join bounds as b on q.migration_id = b.migration_id
    where q.finished_at > now() - interval '10 minutes' and q.finished_at > b.since
    group by q.migration_id, q.queue_name
    union all
    select
        h.migration_id,
        h.queue_name,
        sum(h.last_ten_minutes)::numeric as entries,
        min(h.started_at) as started_at,
        max(h.reported_at) as moved_at
    from rowferry.in_hand as h
    inner join bounds as b on h.migration_id = b.migration_id
    where h.last_ten_minutes > 0 and h.reported_at > b.since
    group by h.migration_id, h.queue_name
),

summed as (
    select
        m.migration_id,
        m.queue_name,
        sum(m.entries) as entries,
        greatest(min(m.started_at), min(b.since)) as began_at,
        case when max(m.moved_at) > now() - interval '15 seconds' then max(m.moved_at) else now() end as ended_at
    from moved as m
    inner join bounds as b on m.migration_id = b.migration_id
    group by m.migration_id, m.queue_name
)

select
    s.migration_id,
    s.queue_name,
    round(s.entries)::bigint as entries,
    (
        s.entries / extract(epoch from greatest(s.ended_at - s.began_at, interval '1 second'))
    )::double precision as rate_10m
from summed as s;
