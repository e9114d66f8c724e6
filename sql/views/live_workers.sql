-- The worker processes with a heartbeat within the last 30 seconds, how many batches each has claimed, how many
-- objects it may have in flight, and the requests a second that it gets through where a server refuses more. `in_hand`
-- are the entries that it has settled so far in its claimed batches, by attempt. `unusable`: why it cannot work on a
-- migration, by its id, or on one queue of it, by the id and the name. `waits_for`: why it gets no connection for a
-- batch. `is_silent`: it has given no sign of life for
-- ten seconds, and counts as dead, as in rowferry.begin_attempt.
create or replace view rowferry.live_workers as
select
    w.id,
    w.host,
    w.pid,
    w.version,
    w.in_flight_limit,
    w.request_rates,
    w.queues,
    w.started_at,
    w.last_seen_at,
    count(a.id) as claimed_batches,
    w.in_hand,
    w.unusable,
    w.last_seen_at <= now() - interval '10 seconds' as is_silent,
    w.waits_for
from rowferry.worker as w
left join rowferry.batch_attempt as a
    on w.id = a.worker_id
    and a.finished_at is null
    and not exists (select from rowferry.batch_attempt as l where l.batch_id = a.batch_id and l.id > a.id)
where w.stopped_at is null and w.last_seen_at > now() - interval '30 seconds'
group by w.id;
