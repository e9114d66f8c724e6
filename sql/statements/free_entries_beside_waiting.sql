-- The wanted entries that no waiting batch of the queue covers, numbered within each stretch between such batches, in
-- one scan: only what is free is sorted. Each entry is looked up among the waiting ranges, which are merged before: a
-- binary search for a group of blocks of ranges, one for the block, one for the range.
with waiting as (
    -- No row: it lends its collation, in which all of this is sorted and compared, to the bounds below.
    select
        e.{id} as first_id,
        e.{id} as last_id
    from {table} as e
    where false
    union all
    select
        (q.payload ->> 'first')::{id_type} as first_id,
        (q.payload ->> 'last')::{id_type} as last_id
    from rowferry.batch_queue as q
    where
        q.migration_id = %(migration_id)s
        and q.queue_name = %(queue)s
        and q.status in ('INIT', 'ERROR')
        and q.payload ->> 'entries' = %(label)s
),

ends as (
    select
        w.first_id as id,
        1 as step
    from waiting as w
    where w.first_id <= w.last_id
    union all
    select
        w.last_id as id,
        -1 as step
    from waiting as w
    where w.first_id <= w.last_id
),

depths as (
    select
        s.id,
        s.step,
        sum(s.step) over (order by s.id, s.step desc rows unbounded preceding) as depth
    from ends as s
),

-- The ends of merged ranges: where the first of some begins, and where the last of them ends.
bounds as (
    select
        d.id,
        d.step,
        (row_number() over (order by d.id, d.step desc) - 1) / 2 as number
    from depths as d
    where d.depth = case when d.step = 1 then 1 else 0 end
),

-- Materialized, since the planner, where its statistics know of hardly any range yet, counts again for each.
size as materialized (
    select ceil(cbrt(count(*) / 2))::integer as length
    from bounds
),

-- An array of texts is walked from its start: so there are three short ones to search, each as long as the others.
blocks as (
    select
        b.number / z.length as number,
        min(b.number) as passed,
        array_agg(b.id order by b.number) filter (where b.step = 1) as first_ids,
        array_agg(b.id order by b.number) filter (where b.step = -1) as last_ids,
        z.length
    from bounds as b
    cross join size as z
    group by b.number / z.length, z.length
),

groups as (
    select
        k.number / k.length as number,
        min(k.number) as passed,
        array_agg(k.first_ids[1] order by k.number) as first_ids
    from blocks as k
    group by k.number / k.length
),

free as (
    select
        n.id,
        coalesce(k.passed + width_bucket(n.id, k.first_ids), 0) as stretch
    from (
        select e.{id} as id
        from {table} as e
        where {wanted} and {where}
    ) as n
    left join
        groups as g
        on width_bucket(n.id, (select array_agg(o.first_ids[1] order by o.number) from groups as o)) - 1 = g.number
    left join blocks as k on g.passed + width_bucket(n.id, g.first_ids) - 1 = k.number
    where k.number is null or n.id > k.last_ids[width_bucket(n.id, k.first_ids)]
)

select n.*
from (
    select
        f.id,
        f.stretch,
        row_number() over (partition by f.stretch order by f.id) as position
    from free as f
) as n
{limit}
