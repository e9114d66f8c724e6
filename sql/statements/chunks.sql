-- The wanted entries that no waiting batch of the queue covers, cut into ranges of at most batch_size ids, in one scan and one sort.
-- Ranges never reach across a waiting one: entries and waiting ranges are laid on one line, and each range that begins
-- opens a new stretch. Where nothing waits, as in a first pass, the entries are numbered and cut without all that.
with waiting as (
    -- No row: it lends its collation, in which all of this is sorted and compared, to the bounds below.
    select
        e.{id} as id,
        e.{id} as last_id
    from {table} as e
    where false
    union all
    select
        (q.payload ->> 'first')::{id_type} as id,
        (q.payload ->> 'last')::{id_type} as last_id
    from rowferry.batch_queue as q
    where
        q.migration_id = %(migration_id)s
        and q.queue_name = %(queue)s
        and q.status in ('INIT', 'ERROR')
        and q.payload ->> 'entries' = %(label)s
),

ranges as (
    select
        w.last_id as covered_to,
        row_number() over (order by w.id) as stretch
    from waiting as w
),

line as (
    select
        e.{id} as id,
        true as is_entry
    from {table} as e
    where {wanted} and {where} and exists (select from waiting)
    union all
    select
        w.id,
        false as is_entry
    from waiting as w
),

numbered as (
    select
        l.id,
        l.is_entry,
        count(*) filter (where not l.is_entry) over along as stretch,
        row_number() over along as position
    from line as l
    window along as (order by l.id, l.is_entry)
),

free as (
    select
        n.id,
        n.stretch,
        n.position
    from numbered as n
    left join ranges as r on n.stretch = r.stretch
    where n.is_entry and (r.covered_to is null or n.id > r.covered_to)
    {limit}
),

counted as (
    select
        e.{id} as id,
        row_number() over (order by e.{id}) as position
    from {table} as e
    where {wanted} and {where} and not exists (select from waiting)
),

all_free as (
    select n.*
    from counted as n
    {limit}
)

select
    f.stretch,
    (f.position - 1) / %(batch_size)s as chunk,
    {first_id} as first,
    {last_id} as last,
    count(*)::integer as entry_count
from free as f
group by f.stretch, (f.position - 1) / %(batch_size)s
union all
select
    0 as stretch,
    (f.position - 1) / %(batch_size)s as chunk,
    {first_id} as first,
    {last_id} as last,
    count(*)::integer as entry_count
from all_free as f
group by (f.position - 1) / %(batch_size)s
