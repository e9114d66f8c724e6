-- The entries that workers have settled inside batches that are not finished: their objects stand, their rows and the
-- verdict are still to be written. One row per migration, queue and table with such entries.
-- `entries`: of each batch the most that any attempt at it has settled, that of a dead worker included: what is there
-- is found again, and takes no time to speak of. So the death of a worker raises no time left.
-- `started_at`: when the first of these attempts began; `reported_at`: when one of the numbers last changed.
-- `last_minute`, `last_ten_minutes`: about how many of them are of that time; none where nothing has changed in it.
create or replace view rowferry.in_hand as
with batches as (
    select
        a.migration_id,
        a.queue_name,
        a.label,
        a.batch_id,
        max(a.in_hand) as entries,
        min(a.started_at) as started_at,
        max(a.reported_at) as reported_at,
        coalesce(
            max(a.in_hand * least(1, 60 / s.seconds)) filter (where a.reported_at > now() - interval '1 minute'), 0
        ) as last_minute,
        max(a.in_hand * least(1, 600 / s.seconds)) as last_ten_minutes
    from rowferry.open_attempts as a
    cross join lateral (
        select extract(epoch from greatest(a.reported_at - a.started_at, interval '1 second')) as seconds
    ) as s
    where a.in_hand > 0
    group by a.migration_id, a.queue_name, a.label, a.batch_id
)

select
    b.migration_id,
    b.queue_name,
    b.label,
    sum(b.entries)::bigint as entries,
    min(b.started_at) as started_at,
    max(b.reported_at) as reported_at,
    sum(b.last_minute)::double precision as last_minute,
    sum(b.last_ten_minutes)::double precision as last_ten_minutes
from batches as b
group by b.migration_id, b.queue_name, b.label;
