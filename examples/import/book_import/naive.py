"""The naive import: every consumer writes all tables in one transaction, rows as they come."""

import time
from collections.abc import Sequence
from multiprocessing import get_context
from threading import Thread
from typing import Any

import psycopg
from psycopg import errors
from psycopg.types.json import Jsonb

from book_import.tables import TABLES, compose

QUEUE = """
create table {table} (
    id bigint generated always as identity primary key,
    items jsonb not null,
    ended_at timestamptz
)
"""
ADD = "insert into {table} (items) values (%s)"
CLAIM = """
select id, items from {table} where ended_at is null order by id limit 1 for update skip locked
"""
WRITE = """
insert into {table} as t (name, books, newest) values (%s, 1, %s)
on conflict (name) do update set books = t.books + 1, newest = greatest(t.newest, excluded.newest)
"""
END = "update {table} set ended_at = clock_timestamp() where id = %s"
TABLE = "naive_queue"
DONE = "select count(*) filter (where ended_at is not null), count(*) from book.naive_queue"
NAME = "naive import"
END_SESSIONS = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = %s"
PATIENCE = 10
"""Seconds that a transaction has when the time is over."""


def fill_queue(connection: psycopg.Connection[Any], batches: Sequence[Sequence[dict[str, Any]]]) -> None:
    """Put batches in a queue of its own."""
    connection.execute(compose(QUEUE, TABLE))
    with connection.cursor() as cursor:
        cursor.executemany(compose(ADD, TABLE), [(Jsonb(list(batch)),) for batch in batches])


def consume(url: str, until: float) -> None:
    """Claim and write batches until none is left, or `time.time()` is past `until`; a deadlock's victim goes on."""
    writes = {table: compose(WRITE, table) for table in TABLES}
    with psycopg.connect(url, application_name=NAME) as connection, connection.cursor() as cursor:
        while time.time() < until:
            try:
                row = connection.execute(compose(CLAIM, TABLE)).fetchone()
                if row is None:
                    return
                for table, write in writes.items():
                    cursor.executemany(write, [(item[table], item["published"]) for item in row[1]])
                connection.execute(compose(END, TABLE), (row[0],))
                connection.commit()
            except errors.DeadlockDetected:
                connection.rollback()


def run_process(url: str, consumers: int, until: float) -> None:
    """Run the consumers of one process."""
    threads = [Thread(target=consume, args=(url, until)) for _ in range(consumers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run_naive(url: str, processes: int, consumers: int, seconds: float) -> float:
    """Let `processes` times `consumers` consumers work, at most for so long; return how long it took."""
    began = time.time()
    children = [
        get_context("spawn").Process(target=run_process, args=(url, consumers, began + seconds))
        for _ in range(processes)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(max(0.0, began + seconds + PATIENCE - time.time()))
        child.terminate()  # does nothing to one that has ended
        child.join()
    with psycopg.connect(url, autocommit=True) as connection:
        while connection.execute(END_SESSIONS, (NAME,)).rowcount:  # they would hold their locks
            time.sleep(0.1)
    return time.time() - began
