-- One pass of `rowferry enqueue`: find the entries that no batch covers, cut them into ranges, insert batches.

-- name: lock_enqueue
-- Serialises the enqueues of one migration; pausing it, or working on it, does not wait for them.
select pg_advisory_xact_lock(hashtextextended('rowferry.enqueue ' || %(name)s, 0));

-- name: free_entries
-- The wanted entries of a table that no waiting batch of the queue covers, numbered by id. `stretch`: the waiting ranges
-- that begin before; `is_end`: the first or last entry of a stretch. Ids and the ends of waiting ranges are gone through
-- in one order, and running sums say how many ranges lie around each id: one scan, and one sort where no index gives
-- that order. The names of the parts are unlike those of a user's tables, which SQL of the plan may read.
with rowferry_waiting as materialized (
    {waiting_ranges}
),

rowferry_ids as (
    (
        select
            {id_columns},
            0 as begins,
            0 as ends
        from {table} as e
        where {wanted} and {where}
        order by {columns}
    )
    union all
    (
        select
            {first_columns},
            1 as begins,
            0 as ends
        from rowferry_waiting as w
        where w.first_id <= w.last_id
        order by w.first_id
    )
    union all
    (
        select
            {last_columns},
            0 as begins,
            1 as ends
        from rowferry_waiting as w
        where w.first_id <= w.last_id
        order by w.last_id
    )
),

-- A range begins before the id that it begins with, and ends after the one that it ends with.
rowferry_walked as (
    select
        i.*,
        sum(i.begins) over (order by i.id) as stretch,
        sum(i.begins - i.ends) over (order by i.id) + sum(i.ends) over (partition by i.id) as ranges
    from rowferry_ids as i
)

select
    f.*,
    row_number() over rowferry_order as position,
    coalesce(lag(f.stretch) over rowferry_order <> f.stretch, true)
    or coalesce(lead(f.stretch) over rowferry_order <> f.stretch, true) as is_end
from (
    select w.*
    from rowferry_walked as w
    where w.ranges = 0 and w.begins + w.ends = 0
    order by w.id
    {limit}
) as f
window rowferry_order as (order by f.id);

-- name: chunks
-- The free entries, cut after each batch_size of them, and wherever a waiting range lies between two. Only the first and
-- the last entry of each batch are grouped, since groups that find no room in memory are written to temporary files with
-- all their rows.
select
    f.stretch,
    (f.position - 1) / %(batch_size)s as chunk,
    {first_id} as first,
    {last_id} as last,
    (max(f.position) - min(f.position) + 1)::integer as entry_count
from ({free_entries}) as f
where f.is_end or mod(f.position, %(batch_size)s) in (0, mod(1, %(batch_size)s))
group by f.stretch, (f.position - 1) / %(batch_size)s;

-- name: count_chunks
-- The batches and entries that insert_batches would put in the queue.
select
    count(*) as batches,
    coalesce(sum(c.entry_count), 0)::bigint as entries
from ({chunks}) as c;

-- name: insert_batches
-- Puts one batch a chunk in the queue; returns how many batches and entries.
with inserted as (
    insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts)
    select
        %(migration_id)s,
        %(queue)s,
        jsonb_build_object('entries', %(label)s::text, 'first', c.first, 'last', c.last) || %(choices)s::jsonb,
        c.entry_count,
        %(max_attempts)s
    from ({chunks}) as c
    order by c.stretch, c.chunk
    returning entry_count
)

select
    count(*) as batches,
    coalesce(sum(i.entry_count), 0)::bigint as entries
from inserted as i;

-- name: find_waiting_objects
-- What earlier passes over these objects have left: whether there was one, whether it is unfinished, and whether
-- batches of theirs are in ERROR.
select
    coalesce(sum(p.batches), 0) > 0 as was_listed,
    coalesce(sum(p.batches_init), 0) > 0 as is_unfinished,
    coalesce(sum(p.batches_error), 0) > 0 as has_errors
from rowferry.table_progress as p
where p.migration_id = %(migration_id)s and p.queue_name = %(queue)s and p.label = %(label)s;

-- name: insert_listing
-- Puts the listing of a prefix in the queue: how many objects there are, its worker finds out.
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts)
values (%(migration_id)s, %(queue)s, %(payload)s, 0, %(max_attempts)s);
