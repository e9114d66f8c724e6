-- One pass of `rowferry enqueue`: find the entries that no batch covers, cut them into ranges, insert batches.

-- name: lift_timeouts
-- An enqueue of hundreds of millions of entries takes longer than a role or a database may allow, and the next one
-- waits for its turn.
select
    set_config('lock_timeout', '0', true),
    set_config('statement_timeout', '0', true);

-- name: lock_enqueue
-- Serialises the enqueues of one migration; pausing it, or working on it, does not wait for them.
select pg_advisory_xact_lock(hashtextextended('rowferry.enqueue ' || %(name)s, 0));

-- name: has_waiting
-- Whether batches of these entries wait in the queue or are in ERROR.
select exists (
    select from rowferry.batch_queue as q
    where
        q.migration_id = %(migration_id)s
        and q.queue_name = %(queue)s
        and q.status in ('INIT', 'ERROR')
        and q.payload ->> 'entries' = %(label)s
) as has_waiting;

-- name: keep_ranges_in_memory
-- Each entry is looked up among the waiting ranges: 128 MB hold a million of them, and spilling them would spill the
-- entries. Right after an enqueue the statistics still say that hardly any waits: a nested loop would compare all with
-- all.
select
    set_config(
        'hash_mem_multiplier',
        greatest(1, least(1000, 128 * 1024 * 1024 / pg_size_bytes(current_setting('work_mem'))))::text,
        true
    ),
    set_config('enable_nestloop', 'off', true);

-- name: free_entries
-- The wanted entries of a table that has no waiting batch, numbered by id: one scan, one sort.
select
    {id_columns},
    0 as stretch,
    row_number() over rowferry_order as position,
    lead(true) over rowferry_order is null as is_end
from (
    select {columns}
    from {table} as e
    where {wanted} and {where}
    order by {columns}
    {limit}
) as e
window rowferry_order as (order by {columns});

-- name: free_entries_beside_waiting
-- The wanted entries that no waiting batch of the queue covers, numbered within each stretch between such batches, in
-- one scan; only free entries are sorted. Each entry is looked up among the waiting ranges, which are merged before: a
-- binary search for a group of blocks of ranges, one for the block, one for the range. The names of the parts are unlike
-- those of a user's tables, which SQL of the plan may read.
with rowferry_bounds as (
    select
        d.id,
        d.step,
        (row_number() over (order by d.id, d.step desc) - 1) / 2 as number
    from ({waiting_ends}) as d
),

-- Materialized, since the planner, where its statistics know of hardly any range yet, counts again for each.
rowferry_size as materialized (
    select ceil(cbrt(count(*) / 2))::integer as length
    from rowferry_bounds
),

-- An array of texts is walked from its start: so there are three short ones to search, each as long as the others.
rowferry_blocks as (
    select
        b.number / z.length as number,
        min(b.number) as passed,
        array_agg(b.id order by b.number) filter (where b.step = 1) as first_ids,
        array_agg(b.id order by b.number) filter (where b.step = -1) as last_ids,
        z.length
    from rowferry_bounds as b
    cross join rowferry_size as z
    group by b.number / z.length, z.length
),

rowferry_groups as (
    select
        k.number / k.length as number,
        min(k.number) as passed,
        array_agg(k.first_ids[1] order by k.number) as first_ids
    from rowferry_blocks as k
    group by k.number / k.length
),

rowferry_free as (
    select
        n.*,
        coalesce(k.passed + width_bucket(n.id, k.first_ids), 0) as stretch
    from (
        select {id_columns}
        from {table} as e
        where {wanted} and {where}
    ) as n
    left join
        rowferry_groups as g
        on
            width_bucket(n.id, (select array_agg(o.first_ids[1] order by o.number) from rowferry_groups as o)) - 1
            = g.number
    left join rowferry_blocks as k on g.passed + width_bucket(n.id, g.first_ids) - 1 = k.number
    where k.number is null or n.id > k.last_ids[width_bucket(n.id, k.first_ids)]
)

select
    f.*,
    row_number() over rowferry_order as position,
    lead(true) over rowferry_order is null as is_end
from (
    select r.*
    from rowferry_free as r
    order by r.stretch, r.id
    {limit}
) as f
window rowferry_order as (partition by f.stretch order by f.id);

-- name: free_entries_beside_ranges
-- The same where a value of the id's type has a fixed length, as numbers and UUIDs have: arrays of such values are
-- searched in halves, so each entry is looked up in one, and no join disturbs the order of the scan. Where the table's
-- index gives the ids in their order, nothing is sorted; else only free entries are. A stretch is numbered from where it
-- begins in that order.
with rowferry_ranges as materialized (
    select
        coalesce(array_agg(d.id order by d.id) filter (where d.step = 1), '{{}}') as first_ids,
        coalesce(array_agg(d.id order by d.id) filter (where d.step = -1), '{{}}') as last_ids
    from ({waiting_ends}) as d
),

rowferry_free as (
    select
        n.*,
        width_bucket(n.id, (select r.first_ids from rowferry_ranges as r)) as stretch
    from (
        select {id_columns}
        from {table} as e
        where {wanted} and {where}
    ) as n
    where
        coalesce(
            n.id > (select r.last_ids from rowferry_ranges as r)[
                width_bucket(n.id, (select r.first_ids from rowferry_ranges as r))
            ],
            true
        )
    order by n.id
    {limit}
),

rowferry_numbered as (
    select
        f.*,
        row_number() over rowferry_order as place,
        lag(f.stretch) over rowferry_order as stretch_before,
        lead(f.stretch) over rowferry_order as stretch_after
    from rowferry_free as f
    window rowferry_order as (order by f.id)
)

select
    f.*,
    f.place - max(
        case when f.stretch is distinct from f.stretch_before then f.place - 1 end
    ) over (order by f.id rows unbounded preceding) as position,
    coalesce(f.stretch_after <> f.stretch, true) as is_end
from rowferry_numbered as f;

-- name: chunks
-- The free entries, cut into ranges of at most batch_size ids. No range reaches across a waiting one, which ends one
-- stretch of free entries and begins the next. Only the first and the last entry of each range are grouped, since groups
-- that find no room in memory are written to temporary files with all their rows.
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

-- name: count_left_alone
-- How many wanted entries of a table no enqueue takes up, since batches in ERROR of the queue cover their ids, and in
-- how many batches. One range scan of the table for each batch in ERROR.
select
    count(*) filter (where c.entries > 0) as batches,
    coalesce(sum(c.entries), 0)::bigint as entries
from (
    select q.payload
    from rowferry.batch_queue as q
    where
        q.migration_id = %(migration_id)s
        and q.queue_name = %(queue)s
        and q.status = 'ERROR'
        and q.payload ->> 'entries' = %(label)s
) as q
cross join lateral (
    select count(*) as entries
    from {table} as e
    where ({columns}) >= ({first_of_batch}) and ({columns}) <= ({last_of_batch}) and {wanted} and {where}
) as c;
