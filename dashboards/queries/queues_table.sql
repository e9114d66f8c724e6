select
    s.queue_name as "queue",
    case
        when s.is_slowest and s.state = 'running' and count(*) over () > 1 then 'holds_the_end'
        else s.state
    end as "state",
    floor(1000 * s.done_share) / 10 as "done",
    s.pending_left as "left",
    s.rate_1m as "entries/s",
    f.entries / extract(epoch from least(interval '1 hour', greatest(interval '1 s', now() - s.started_at))) as "last hour",
    extract(epoch from s.time_left)::double precision as "time left",
    s.unsettled as "failed",
    100 * s.failed_share as "of finished",
    s.claimed,
    s.max_claimed as "at most",
    extract(epoch from now() - s.due_since)::double precision as "oldest due"
from rowferry.queue_status as s
left join (
    select
        queue_name,
        sum(entry_count) as entries
    from rowferry.finished_batches
    where migration = ${migration:sqlstring} and finished_at >= now() - interval '1 hour'
    group by queue_name
) as f on s.queue_name = f.queue_name
where s.migration = ${migration:sqlstring}
order by s.position
