-- rowferry.throughput
--   The throughput of the last minute: one row a migration and queue that finished a batch in it, with the entries of
--   those batches and the rate in entries a second. Reads only the index of finished batches.
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
