-- The rate of the last minute, per migration and queue that finished a batch in it, or settled entries
-- inside one (rowferry.in_hand), with these entries and their rate in entries a second. Reads only the index of finished
-- batches, and what workers have claimed.
create or replace view rowferry.rate_1m as
with moved as (
    select
        q.migration_id,
        q.queue_name,
        sum(q.entry_count) as entries,
        min(q.started_at) as started_at
    from rowferry.batch_queue as q
    where q.finished_at > now() - interval '1 minute'
    group by q.migration_id, q.queue_name
    union all
    select
        h.migration_id,
        h.queue_name,
        sum(h.last_minute)::numeric as entries,
        min(h.started_at) as started_at
    from rowferry.in_hand as h
    where h.last_minute > 0
    group by h.migration_id, h.queue_name
)

select
    m.migration_id,
    m.queue_name,
    round(sum(m.entries))::bigint as entries,
    (
        sum(m.entries)
        / extract(epoch from greatest(least(now() - min(m.started_at), interval '1 minute'), interval '1 second'))
    )::double precision as rate_1m
from moved as m
group by m.migration_id, m.queue_name;
