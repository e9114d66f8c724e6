-- The batches that rest until their next attempt, the soonest of them, and what most of them stopped for. `next_at` is
-- null where an operator has set every run_after to infinity. Asked by queue: the index of waiting batches begins with
-- it, and what is due already is then not read.
select
    count(*) as batches,
    nullif(min(q.run_after), 'infinity') as next_at,
    mode() within group (order by q.error) as error
from (
    select distinct t.queue_name
    from rowferry.table_progress as t
    where t.migration_id = %(id)s
) as u
inner join rowferry.batch_queue as q on u.queue_name = q.queue_name
where q.status = 'INIT' and q.run_after > statement_timestamp() and q.migration_id = %(id)s
