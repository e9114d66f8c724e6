"""Batches and workers put into the queue's tables by hand."""

from support.queue.lines import Lines

ADD = """
insert into rowferry.batch_queue (
    migration_id, queue_name, payload, entry_count, status, started_at, finished_at, migrated, failed
)
select
    m.id, %(queue)s, '{}', %(entries)s, %(status)s,
    now() - interval '10 s', case %(status)s when 'INIT' then null else now() end,
    case %(status)s when 'DONE' then %(entries)s else 0 end, case %(status)s when 'ERROR' then %(entries)s else 0 end
from rowferry.migration as m where m.name = %(migration)s
"""
ADD_BATCHES = """
insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count)
select %s, 'migrate', '{}', 1 from generate_series(1, %s)
"""
"""Adds batches of one entry to a migration, so many."""


def add(lines: Lines, queue: str, entries: int, status: str = "INIT", *, migration: str = "m") -> None:
    """Add a batch; a finished one took ten seconds until now, so it gives its queue a tenth of its entries a second."""
    chosen = {"queue": queue, "entries": entries, "status": status, "migration": migration}
    lines.session.execute(ADD, chosen)


WORKER = """
insert into rowferry.worker (id, host, pid, version, batches, in_flight_limit, queues, last_seen_at)
values (%(id)s, %(id)s, 7, '1', 0, 16, %(queues)s, now() - %(silent)s::interval)
"""


def add_worker(lines: Lines, *queues: str, name: str = "host-a", silent: str = "0 s") -> None:
    lines.session.execute(WORKER, {"id": name, "queues": list(queues), "silent": silent})


def change(lines: Lines, table: str, assignment: str) -> None:
    lines.session.execute(f"update rowferry.{table} set {assignment}".encode())
