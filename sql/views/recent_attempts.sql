-- The last 10,000 attempts, one a row: the cost does not grow with the ledger. `verdict` is null while an attempt
-- runs, and stays null if its worker died.
create or replace view rowferry.recent_attempts as
with recent as (
    select *
    from rowferry.batch_attempt
    order by id desc
    limit 10000
)

select
    a.id as attempt_id,
    m.name as migration,
    q.queue_name,
    a.batch_id,
    a.number as attempt,
    a.requeues,
    a.worker_id,
    w.host,
    a.started_at,
    a.finished_at,
    a.verdict,
    a.error
from recent as a
inner join rowferry.batch_queue as q on a.batch_id = q.id
inner join rowferry.migration as m on q.migration_id = m.id
left join rowferry.worker as w on a.worker_id = w.id;
