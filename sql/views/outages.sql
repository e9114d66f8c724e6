-- The migrations whose batches are only put back, as while a server is away: one row each of which this has become of
-- three batches at least, of the last one within three minutes, and nothing has moved since the first of them: no batch
-- has ended, no entry was settled, no part of an upload was written. Batches that a worker put back as it stopped do
-- not count. `since`: when the first was put back; `error`: why the last was. Looks at 10,000 attempts.
create or replace view rowferry.outages as
with released as (
    select
        q.migration_id,
        q.queue_name,
        a.id,
        a.finished_at,
        a.error,
        (a.outcomes ->> 'migrated')::integer + (a.outcomes ->> 'kept')::integer > 0 as has_settled
    from (
        select *
        from rowferry.batch_attempt
        order by id desc
        limit 10000
    ) as a
    inner join rowferry.batch_queue as q on a.batch_id = q.id
    where a.verdict = 'RELEASED' and a.outcomes is not null
),

moved as (
    select
        e.migration_id,
        max(e.at) as at
    from (
        select
            t.migration_id,
            t.finished_at as at
        from rowferry.batch_tally as t
        union all
        select
            h.migration_id,
            h.reported_at as at
        from rowferry.in_hand as h
        where h.entries > 0
        union all
        select
            u.migration_id,
            u.touched_at as at
        from rowferry.upload as u
        union all
        select
            r.migration_id,
            r.finished_at as at
        from released as r
        where r.has_settled
    ) as e
    group by e.migration_id
)

select
    r.migration_id,
    min(r.finished_at) as since,
    (array_agg(r.error order by r.id desc))[1] as error,
    count(*) as batches
from released as r
left join moved as d on r.migration_id = d.migration_id
where not r.has_settled and r.finished_at > coalesce(d.at, '-infinity')
group by r.migration_id
having count(*) >= 3 and max(r.finished_at) > now() - interval '3 minutes';
