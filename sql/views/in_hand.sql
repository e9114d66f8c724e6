-- The entries that workers have settled inside batches that are not finished: their objects stand, their rows and the
-- verdict are still to be written. One row per migration, queue and table with such entries.
-- `entries`: those of live workers, and of each batch only of its last attempt. This number falls back where a batch
-- is put back, where its worker has died and another has taken it over, or has been silent for 30 seconds.
-- `reached`: the most that any attempt at each batch had settled, that of a dead worker included: what is there is
-- found again, and takes no time to speak of. The time left goes by this, so that the death of a worker does not raise
-- it.
-- `started_at`: when the first of these attempts began; `reported_at`: when one of the numbers last changed.
-- `last_minute`, `last_ten_minutes`: about how many of them are of that time; none where nothing has changed in it.
create or replace view rowferry.in_hand as
with told as (
    select
        a.*,
        a.is_live and a.is_last as counts,
        extract(epoch from greatest(a.reported_at - a.started_at, interval '1 second')) as seconds
    from rowferry.open_attempts as a
    where a.in_hand > 0
),

batches as (
    select
        t.migration_id,
        t.queue_name,
        t.label,
        t.batch_id,
        coalesce(max(t.in_hand) filter (where t.counts), 0) as entries,
        max(t.in_hand) as reached,
        min(t.started_at) as started_at,
        max(t.reported_at) as reported_at,
        coalesce(
            max(t.in_hand * least(1, 60 / t.seconds)) filter (
                where t.counts and t.reported_at > now() - interval '1 minute'
            ), 0
        ) as last_minute,
        max(t.in_hand * least(1, 600 / t.seconds)) as last_ten_minutes
    from told as t
    group by t.migration_id, t.queue_name, t.label, t.batch_id
)

select
    b.migration_id,
    b.queue_name,
    b.label,
    sum(b.entries)::bigint as entries,
    sum(b.reached)::bigint as reached,
    min(b.started_at) as started_at,
    max(b.reported_at) as reported_at,
    sum(b.last_minute)::double precision as last_minute,
    sum(b.last_ten_minutes)::double precision as last_ten_minutes
from batches as b
group by b.migration_id, b.queue_name, b.label;
