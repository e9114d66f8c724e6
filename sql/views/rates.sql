-- The rates of the last minute and of the last ten, for screens and for the time left, per migration and queue that
-- finished a batch in them, or settled entries inside one (rowferry.in_hand): entries a second, null where there are
-- none. For a queue that began later: the time since then. `rate_10m` counts from the last time that anything of the
-- migration was resumed; the time since something last moved counts in it only from 15 seconds on: for so long the
-- batches of a dead worker may wait for its silence.
-- Reads only the index of finished batches, and what workers have claimed.
create or replace view rowferry.rates as
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
        case when q.finished_at > now() - interval '1 minute' then q.entry_count end as last_minute,
        case when q.finished_at > b.since then q.entry_count end as last_ten_minutes,
        q.started_at,
        q.finished_at as moved_at,
        b.since
    from rowferry.batch_queue as q
    inner join bounds as b on q.migration_id = b.migration_id
    where q.finished_at > now() - interval '10 minutes'
    union all
    select
        h.migration_id,
        h.queue_name,
        nullif(h.last_minute, 0) as last_minute,
        case when h.reported_at > b.since then nullif(h.last_ten_minutes, 0) end as last_ten_minutes,
        h.started_at,
        h.reported_at as moved_at,
        b.since
    from rowferry.in_hand as h
    inner join bounds as b on h.migration_id = b.migration_id
),

summed as (
    select
        m.migration_id,
        m.queue_name,
        sum(m.last_minute) as entries_1m,
        sum(m.last_ten_minutes) as entries_10m,
        now() - min(m.started_at) filter (where m.last_minute is not null) as lasted_1m,
        case when max(m.moved_at) > now() - interval '15 seconds' then max(m.moved_at) else now() end
        - greatest(min(m.started_at) filter (where m.last_ten_minutes is not null), min(m.since)) as lasted_10m
    from moved as m
    where coalesce(m.last_minute, m.last_ten_minutes) is not null
    group by m.migration_id, m.queue_name
)

select
    s.migration_id,
    s.queue_name,
    s.entries_1m / extract(
        epoch from greatest(least(s.lasted_1m, interval '1 minute'), interval '1 second')
    )::double precision as rate_1m,
    s.entries_10m / extract(epoch from greatest(s.lasted_10m, interval '1 second'))::double precision as rate_10m
from summed as s;
