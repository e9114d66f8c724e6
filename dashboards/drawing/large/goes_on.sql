-- The scene as it is now: workers live, and the batches of the running migration that would have ended since have ended.
update rowferry.worker set last_seen_at = clock_timestamp(), reported_at = clock_timestamp() where id like '%:live';
update rowferry.batch_queue as q
set
    status = 'DONE',
    attempts = 1,
    started_at = d.finished_at - interval '4 s',
    finished_at = d.finished_at,
    migrated = case when q.queue_name = 'migrate' then q.entry_count else 0 end,
    kept = case when q.queue_name = 'migrate' then 0 else q.entry_count end
from (
    select
        b.id,
        l.finished_at + l.each * row_number() over (partition by b.queue_name order by b.id) as finished_at
    from rowferry.batch_queue as b
    inner join (
        select
            e.migration_id,
            e.queue_name,
            max(e.finished_at) as finished_at,
            case when e.queue_name = 'migrate' then interval '0.686 s' else interval '3 s' end as each
        from rowferry.batch_queue as e
        inner join rowferry.migration as m on e.migration_id = m.id
        where m.name = 'avatars' and e.finished_at > now() - interval '1 hour'
        group by e.migration_id, e.queue_name
    ) as l on b.migration_id = l.migration_id and b.queue_name = l.queue_name
    where b.status = 'INIT'
) as d
where q.id = d.id and d.finished_at <= clock_timestamp();
