"""What commands, views and panels cost PostgreSQL over a large queue: 5 M batches DONE, 20,000 ERROR, 1 M INIT.

The batches in ERROR have a million failures, for six reasons. Where ROWFERRY_BENCH_BEFORE names another checkout, that
one is measured as well, in such a database of its own. CPU is that of the backend for statements, without parallel
workers, and of the whole server for commands.
"""

import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from bench.environment import execute, read_postgres_version, running_postgres
from bench.large_queue import fill_queue, make_tables, write_plan
from bench.record import Figures, Record
from bench.server_cpu import read_backend_cpu, read_server_cpu
from bench.trees import list_trees, run_in
from rowferry_lab.servers.postgres import EmbeddedPostgres
from rowferry_lab.servers.postgres_programs import find_postgres_binaries

SETTINGS = {"shared_buffers": "2GB", "max_wal_size": "8GB", "maintenance_work_mem": "512MB", "autovacuum": "off"}
MACROS = (
    (r"\$__timeFilter\((\w+)\)", r"\1 between to_timestamp(SHOWN_FROM) and to_timestamp(SHOWN_TO)"),
    (r"\$__timeFrom\(\)", "to_timestamp(SHOWN_FROM)"),
    (r"\$__timeTo\(\)", "to_timestamp(SHOWN_TO)"),
    (r"\$__timeGroupAlias\((\w+),[^)]*\)", r"floor(extract(epoch from \1) / 60) * 60 as time"),
    (r"\$__interval_ms", "SHOWN_INTERVAL_MS"),
    (r"\$__unixEpochFrom\(\)", "SHOWN_FROM"),
    (r"\$__unixEpochTo\(\)", "SHOWN_TO"),
    (r"\$\{migration:sqlstring\}", "'large'"),
    (r"\$\{queue:sqlstring\}", "'migrate'"),
    (r"\$\{host:sqlstring\}", "'host-1'"),
)
INTERVALS_MS = {1: 10_000, 6: 20_000, 24: 60_000, 168: 600_000}
"""By the hours that a dashboard shows: what Grafana asks for where a panel is 1,000 pixels wide."""
REFRESH_MS = 300
"""What a refresh of the dashboard Migration may cost, as docs/dashboards.md sets it up."""
SIZES = """
select relname, pg_total_relation_size(oid) / 1048576 from pg_class where relname like 'batch%' and relkind = 'r'
"""
CLAIMS = 40
CLAIM = "select id from rowferry.claim_batch(array['migrate'])"
FINISH = "update rowferry.batch_queue set status = 'DONE', migrated = entry_count where id = any(%s)"
OLDEST = "select id from rowferry.batch_queue where status = 'INIT' order by run_after, id limit %s"
MINUTES = "select count(*) from rowferry.finished_minute"
NEW_ROWS = "insert into public.table_0 select -i, 'image/new-' || i from generate_series(1, 50) as i"
COMMANDS = {
    "status": ("status", "--no-objects"),
    "errors": ("errors",),
    "errors --entries": ("errors", "--entries"),
    "report": ("report", "--migration", "large"),
    "report --manifest": ("report", "--migration", "large", "--manifest", "/dev/null"),
    "watch": ("watch", "--once"),
    "second enqueue": ("enqueue", "--yes"),
}


def run(record: Record) -> None:
    """Make the queue once, copy it, and measure each checkout in its own copy."""
    done = record.pick(5_000_000, short=5_000)
    trees = list_trees()
    binaries = find_postgres_binaries()[-1]
    with running_postgres(SETTINGS, binaries=binaries) as postgres, tempfile.TemporaryDirectory() as temporary:
        record.versions["postgresql"] = read_postgres_version()
        for name, tree in trees.items():
            execute(sql.SQL("create database {}").format(sql.Identifier(name)))
            with leading_to(postgres, name):
                plan = write_plan(Path(temporary))
                run_in(tree, "-m", "rowferry_cli", "init")
                make_tables(os.environ["DATABASE_URL"])
                run_in(tree, "-m", "rowferry_cli", "enqueue", "--yes", "--plan", str(plan))
                fill_queue(os.environ["DATABASE_URL"], done)
                record.settings |= {f"{table}_mb": int(size) for table, size in execute(SIZES)}
                keep_minutes(tree)
                measures = list_measures(postgres, tree, plan, done)
                record.interleave({f"{what}, {name}": measure for what, measure in measures}, repetitions=1)
            execute(sql.SQL("drop database {}").format(sql.Identifier(name)))
        record.settings |= {"done": done, "in_error": done // 250, "failures": done // 5, "waiting": done // 5}
    for contestant, figures in record.summarise().items():
        most = REFRESH_MS if re.match(r"refresh, .* now", contestant) else None
        record.expect(f"CPU, {contestant}", figures["cpu_ms"]["median"], at_most=most, unit=" ms")


@contextmanager
def leading_to(postgres: EmbeddedPostgres, database: str) -> Iterator[None]:
    """Let DATABASE_URL lead to a database for a while."""
    before = os.environ["DATABASE_URL"]
    os.environ["DATABASE_URL"] = postgres.dsn(database)
    try:
        yield
    finally:
        os.environ["DATABASE_URL"] = before


def list_measures(
    postgres: EmbeddedPostgres, tree: Path, plan: Path, done: int
) -> Iterator[tuple[str, Callable[[], Figures]]]:
    """Yield whatever is measured with its name, in the order in which it is to be done."""
    yield "init", partial(measure_command, postgres, tree, ("init",))
    yield "claim", partial(measure_claims, 0)
    for path in sorted((tree / "sql" / "views").glob("*.sql")):
        recent = " where finished_at > now() - interval '1 hour'" if path.stem == "finished_batches" else ""
        yield f"view {path.stem}", partial(measure_query, f"select * from rowferry.{path.stem}{recent}")
    for path in sorted((tree / "dashboards" / "queries").glob("*.sql")):
        yield f"panel {path.stem}", partial(measure_query, fill_macros(path.read_text(encoding="utf-8")))
    for path in sorted((tree / "dashboards" / "alert_queries").glob("*.sql")):
        yield f"alert {path.stem}", partial(measure_query, path.read_text(encoding="utf-8"))
    board = json.loads((tree / "dashboards" / "grafana" / "dashboards" / "migration.json").read_text(encoding="utf-8"))
    for hours in INTERVALS_MS:
        for jit in ("off", "on"):
            yield f"refresh, {hours} h, jit {jit}", partial(measure_refresh, list_asked(board), hours, jit)
        yield f"first refresh, {hours} h", partial(measure_refresh, list_asked(board), hours, "off", is_first=True)
    exporter = (tree / "sql" / "queries" / "exporter.sql").read_text(encoding="utf-8")
    for name, query in re.findall(r"^-- name: (exporter_\w+)\n(.*?);$", exporter, re.MULTILINE | re.DOTALL):
        yield name.replace("_", " "), partial(measure_query, query.replace("%(limit)s", "1000"))
    for name, command in COMMANDS.items():
        options = ("--plan", str(plan)) if command[0] in {"status", "errors", "enqueue"} else ()
        yield name, partial(measure_command, postgres, tree, (*command, *options))
    for finished in (done // 500, done // 25):
        yield f"claim behind {finished:,} finished", partial(measure_claims, finished)


def keep_minutes(tree: Path) -> None:
    """Do what the heartbeats of a week have done."""
    if (tree / "sql" / "functions" / "sum_minutes.sql").exists():
        kept = None
        while kept != (kept := execute(MINUTES)):
            for _ in range(10):
                execute("select rowferry.sum_minutes()")


def list_asked(board: dict[str, Any]) -> list[str]:
    """Return the SQL that a dashboard sends at each refresh: of its marks and of panels that are not in closed rows."""
    panels = [target for panel in board["panels"] for target in panel.get("targets", ())]
    marks = [mark.get("target", {}) for mark in board["annotations"]["list"]]
    return [target["rawSql"] for target in (*panels, *marks) if target.get("rawSql")]


def fill_macros(query: str, hours: int = 6) -> str:
    """Return the query of a panel as Grafana would send it for the last hours."""
    for pattern, words in MACROS:
        query = re.sub(pattern, words, query)
    query = query.replace("SHOWN_INTERVAL_MS", str(INTERVALS_MS[hours]))
    now = int(time.time())
    return query.replace("SHOWN_FROM", str(now - 3600 * hours)).replace("SHOWN_TO", str(now))


def measure_refresh(queries: list[str], hours: int, jit: str, *, is_first: bool = False) -> Figures:
    """Ask what a dashboard asks at a refresh, and return what the backend used.

    Grafana keeps its sessions for hours (`maxIdleConns`, `connMaxLifetime` of its data source), so that a refresh finds
    the catalog read: the second one is measured, unless `is_first`, which is what whoever opens a dashboard waits for.
    """
    with open_session(jit) as connection:
        if not is_first:
            for query in queries:
                connection.execute(fill_macros(query, hours).encode()).fetchall()
        figures = [measure_statement(connection, fill_macros(query, hours)) for query in queries]
    return {name: sum(one[name] for one in figures) for name in ("cpu_ms", "wall_ms")}


def measure_query(query: str) -> Figures:
    """Run a query once, in a session of its own, and return what its backend used."""
    with open_session() as connection:
        return measure_statement(connection, query)


@contextmanager
def open_session(jit: str | None = None) -> Iterator[psycopg.Connection]:
    """Yield a session that starts no parallel workers, whose CPU would not be seen; `jit`: on, off, or the server's."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True, prepare_threshold=None) as connection:
        connection.execute("set max_parallel_workers_per_gather = 0")
        if jit:
            connection.execute("select set_config('jit', %s, false)", (jit,))
        yield connection


def measure_statement(connection: psycopg.Connection, query: str) -> Figures:
    """Run a query once in a session and return what its backend used."""
    began, used = time.monotonic(), read_backend_cpu(connection.info.backend_pid)
    connection.execute(query.encode()).fetchall()
    used = read_backend_cpu(connection.info.backend_pid) - used
    return {"cpu_ms": 1000 * used, "wall_ms": 1000 * (time.monotonic() - began)}


def measure_claims(finished: int) -> Figures:
    """Claim and finish some batches, behind others that finish first under the snapshot of a stranger."""
    dsn, used, walls = os.environ["DATABASE_URL"], 0.0, 0.0
    with psycopg.connect(dsn) as stranger, psycopg.connect(dsn) as connection:
        stranger.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        stranger.execute("select 1 from pg_class limit 1")
        oldest = [id_ for (id_,) in connection.execute(OLDEST, (finished,))]
        connection.execute(FINISH, (oldest,))
        connection.commit()
        for _ in range(CLAIMS):
            began, before = time.monotonic(), read_backend_cpu(connection.info.backend_pid)
            claimed = connection.execute(CLAIM).fetchone()
            used += read_backend_cpu(connection.info.backend_pid) - before
            walls += time.monotonic() - began
            assert claimed is not None
            connection.execute(FINISH, (list(claimed),))
            connection.commit()
    execute("vacuum rowferry.batch_queue")
    return {"cpu_ms": 1000 * used / CLAIMS, "wall_ms": 1000 * walls / CLAIMS}


def measure_command(postgres: EmbeddedPostgres, tree: Path, command: tuple[str, ...]) -> Figures:
    """Run a command of the checkout and return what the whole server used meanwhile."""
    if command[0] == "enqueue":
        execute(NEW_ROWS)
    began, used = time.monotonic(), read_server_cpu(postgres.pid)
    run_in(tree, "-m", "rowferry_cli", *command, exits=(0, 1))
    return {"cpu_ms": 1000 * (read_server_cpu(postgres.pid) - used), "wall_ms": 1000 * (time.monotonic() - began)}
