select
    case
        when m.is_done then 'done'
        when bool_and(q.paused_at is not null) then 'paused'
        when (select coalesce(sum(h.live), 0) from rowferry.worker_hosts as h) = 0 then 'no workers'
        when min(q.due_since) is null then 'nothing due'
        else 'running'
    end as status
from rowferry.queue_status as q
inner join rowferry.migration_status as m on q.migration_id = m.migration_id
where q.migration = ${migration:sqlstring} and q.queue_name in (${queue:sqlstring})
group by m.is_done
