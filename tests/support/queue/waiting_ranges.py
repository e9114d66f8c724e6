"""What may not be said of the ranges that wait in the queue, as queries that then find nothing; and how batches end."""

from psycopg import sql

from support.entries.entry_table import EntryTable, Record, trusted

NOT_IN_ONE_RANGE = """
    select a.id::text as id, count(q.id) as ranges
    from public.avatars as a
    left join rowferry.batch_queue as q
        on q.status in ('INIT', 'ERROR')
        and a.id between (q.payload ->> 'first')::{type} and (q.payload ->> 'last')::{type}
    where a.path like 'image/%'
    group by a.id
    having count(q.id) <> 1
"""
OVERLAPS = """
    select q.id, r.id
    from rowferry.batch_queue as q
    inner join rowferry.batch_queue as r
        on q.id < r.id
        and (q.payload ->> 'first')::{ordered} <= (r.payload ->> 'last')::{ordered}
        and (r.payload ->> 'first')::{ordered} <= (q.payload ->> 'last')::{ordered}
    where q.status in ('INIT', 'ERROR') and r.status in ('INIT', 'ERROR')
"""
MISCOUNTED = """
    select q.id
    from rowferry.batch_queue as q
    where q.id = any(%s) and q.entry_count <> (
        select count(*) from public.avatars as a
        where a.path like 'image/%%'
        and a.id between (q.payload ->> 'first')::{type} and (q.payload ->> 'last')::{type}
    )
"""
MIGRATE = """
    update public.avatars set path = replace(path, 'image/', 'avatar/') where id between %s::{type} and %s::{type}
"""
END = {
    "DONE": "update rowferry.batch_queue set status = 'DONE', migrated = entry_count where id = %s",
    "ERROR": "update rowferry.batch_queue set status = 'ERROR', failed = entry_count where id = %s",
    "INIT": "update rowferry.batch_queue set status = 'INIT', worker_id = null where id = %s",
}


def finish(table: EntryTable, batch: Record, status: str) -> None:
    """Let a batch end as a worker would have it end."""
    bounds = (batch["payload"]["first"], batch["payload"]["last"])
    if status == "DONE":
        table.execute(sql.SQL(MIGRATE).format(type=trusted(table.id_type)), bounds)
    table.execute(END[status], (batch["id"],))


def two_tables(table: EntryTable) -> None:
    """Give the plan a second table with the same ids."""
    table.execute("create table public.covers (like public.avatars including all)")
    table.plan["entries"].append({**table.plan["entries"][0], "table": "public.covers"})
    table.add_legacy(range(10))
    table.execute("insert into public.covers select * from public.avatars")
