select
    case
        when s.paused_at is not null then 'paused'
        when coalesce(h.live, 0) = 0 then 'no workers'
        when s.due_since is null then 'nothing due'
        else 'running'
    end as status
from rowferry.migration_status as s
cross join (select sum(live) as live from rowferry.worker_hosts) as h
where s.migration = ${migration:sqlstring}
