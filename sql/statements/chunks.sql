-- The wanted entries that no waiting batch of the queue covers, cut into ranges of at most batch_size ids: none reaches
-- across a waiting range, which ends one stretch of them and begins the next.
select
    f.stretch,
    (f.position - 1) / %(batch_size)s as chunk,
    {first_id} as first,
    {last_id} as last,
    count(*)::integer as entry_count
from ({free_entries}) as f
group by f.stretch, (f.position - 1) / %(batch_size)s
