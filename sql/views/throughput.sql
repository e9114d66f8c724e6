-- rowferry.throughput
--   How fast the work goes: one row a migration and queue that finished a batch within the last minute, with the
--   entries of those batches and the rate in entries a second. Reads the index of finished batches only.
create or replace view rowferry.throughput as
select
    q.migration_id,
    q.queue_name,
    sum(q.entry_count)::bigint as entries,
    (
        sum(q.entry_count)
        / extract(epoch from greatest(least(now() - min(q.started_at), interval '1 minute'), interval '1 second'))
    )::double precision as rate
from rowferry.batch_queue as q
where q.finished_at > now() - interval '1 minute'
group by q.migration_id, q.queue_name;
