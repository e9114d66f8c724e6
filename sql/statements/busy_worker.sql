-- The worker of the demo to kill: it holds a batch, and some work is done already.
select
    b.pid,
    b.batch_id
from rowferry.claimed_batches as b
where exists (select from rowferry.batch_queue where status = 'DONE')
order by b.started_at desc
limit 1
