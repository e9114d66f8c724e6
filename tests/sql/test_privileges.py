"""Least privilege, from the catalogue: over every object of the database, a role may do what is written here, no more.

What stands here is meant to be read, and to be changed by hand when a grant changes on purpose.
"""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from rowferry_cli.setup.grants import PURPOSES, Purpose
from support.entries.entry_table import EntryTable
from support.postgres.ordinary import administrator
from support.postgres.privileges import list_privileges, may, write_trials
from support.postgres.roles import Roles, grant, log_in, new_role, new_roles

pytestmark = pytest.mark.versions

EVERYBODY = {"CONNECT this database", "TEMPORARY this database", "USAGE schema public"}
"""What PostgreSQL gives to PUBLIC, and rowferry does not take away: the database is the application's."""

VIEWS = {
    "USAGE schema rowferry",
    "SELECT rowferry.claimed_batches",
    "SELECT rowferry.error_reasons",
    "SELECT rowferry.finished_batches",
    "SELECT rowferry.live_workers",
    "SELECT rowferry.rates",
    "SELECT rowferry.open_uploads",
    "SELECT rowferry.outages",
    "SELECT rowferry.progress",
    "SELECT rowferry.queue_status",
    "SELECT rowferry.recent_attempts",
    "SELECT rowferry.table_progress",
    "SELECT rowferry.worker_hosts",
    "SELECT rowferry.migration_state",
    "SELECT rowferry.events",
    "SELECT rowferry.oldest_transactions",
    "SELECT rowferry.in_hand",
    "SELECT rowferry.open_attempts",
    "EXECUTE rowferry.measure_transactions",
    "EXECUTE rowferry.share_done",
    "EXECUTE rowferry.add_counts",
    "EXECUTE rowferry.count_batch",
    "EXECUTE rowferry.sum_counts",
}
QUEUE = VIEWS | {
    "SELECT rowferry.batch_queue",
    "SELECT rowferry.coverage",
    "SELECT rowferry.migration",
    "SELECT rowferry.pass",
    "SELECT rowferry.queue",
    "SELECT rowferry.schema_migration",
    "SELECT rowferry.server_fact",
}
ENTRIES = {"SELECT public.avatars(id)", "SELECT public.avatars(path)"}

STEERED = ("priority", "weight", "max_claimed", "paused_at", "pause_reason", "next")
"""What an operator may say of a queue."""

EXPECTED: dict[Purpose, set[str]] = {
    "enqueuer": QUEUE
    | ENTRIES
    | {
        "EXECUTE rowferry.begin_pass",
        "EXECUTE rowferry.choose_on_conflict",
        "EXECUTE rowferry.note_switch",
        "EXECUTE rowferry.enqueue_items",
        "EXECUTE rowferry.replace_items",
        "EXECUTE rowferry.record_coverage",
        "EXECUTE rowferry.record_fact",
        "EXECUTE rowferry.record_pass",
        "EXECUTE rowferry.register_migration",
        "EXECUTE rowferry.renew_batches",
        "INSERT rowferry.batch_queue(entry_count)",
        "INSERT rowferry.batch_queue(max_attempts)",
        "INSERT rowferry.batch_queue(migration_id)",
        "INSERT rowferry.batch_queue(payload)",
        "INSERT rowferry.batch_queue(queue_name)",
    },
    "worker": QUEUE
    | ENTRIES
    | {
        "EXECUTE rowferry.heartbeat",
        "EXECUTE rowferry.add_ranges",
        "EXECUTE rowferry.begin_attempt",
        "EXECUTE rowferry.claim_batch",
        "EXECUTE rowferry.end_attempt",
        "EXECUTE rowferry.fail_batch",
        "EXECUTE rowferry.find_lines",
        "EXECUTE rowferry.find_oldest",
        "EXECUTE rowferry.finish_batch",
        "EXECUTE rowferry.lose_attempts",
        "EXECUTE rowferry.judge_fault",
        "EXECUTE rowferry.record_fact",
        "EXECUTE rowferry.pause_migration",
        "EXECUTE rowferry.take_row_turn",
        "EXECUTE rowferry.take_upload",
        "EXECUTE rowferry.record_upload",
        "EXECUTE rowferry.record_parts",
        "EXECUTE rowferry.add_parts",
        "EXECUTE rowferry.list_uploads",
        "EXECUTE rowferry.note_copy",
        "EXECUTE rowferry.note_write",
        "EXECUTE rowferry.note_folder",
        "EXECUTE rowferry.record_copy",
        "EXECUTE rowferry.find_copy",
        "EXECUTE rowferry.end_upload",
        "EXECUTE rowferry.update_worker",
        "EXECUTE rowferry.split_batch",
        "EXECUTE rowferry.share_connections",
        "UPDATE public.avatars(path)",
    },
    "operator": QUEUE
    | {
        "EXECUTE rowferry.choose_on_conflict",
        "EXECUTE rowferry.requeue",
        "EXECUTE rowferry.set_pause",
        "SELECT rowferry.batch_attempt",
        "SELECT rowferry.entry_failure",
        "SELECT rowferry.worker",
        "UPDATE rowferry.batch_queue(status)",
        "UPDATE rowferry.migration(pause_reason)",
        "UPDATE rowferry.migration(paused_at)",
        *(f"{way} rowferry.queue({column})" for way in ("INSERT", "UPDATE") for column in STEERED),
        "INSERT rowferry.queue(migration_id)",
        "INSERT rowferry.queue(name)",
    },
    "grafana": VIEWS,
}

THE_APPLICATIONS_OWN = (
    "alter table public.avatars add column title text",
    "create table public.orders (id bigint generated always as identity, total numeric)",
    "create sequence public.invoices",
    "create function public.refund(total numeric) returns numeric language sql as 'select $1'",
    "revoke all on function public.refund from public",
    "create schema private",
    "create table private.salaries (id bigint, salary numeric)",
)


@pytest.fixture
def roles(table: EntryTable) -> Iterator[Roles]:
    """One role a purpose, with its grants, in a database that belongs to an application."""
    for words in THE_APPLICATIONS_OWN:
        table.execute(words)
    with administrator(table.dsn) as connection:  # PostgreSQL 14 grants it, and its superuser owns that schema
        connection.execute("revoke create on schema public from public")
    with new_roles(table.dsn) as roles:
        grant(table, roles)
        yield roles


def test_a_role_may_do_what_is_written_here_and_nothing_else(
    table: EntryTable, roles: Roles, subtests: pytest.Subtests
) -> None:
    """Beyond what PostgreSQL's own schemas allow a role to which nothing was granted."""
    with new_role(table.dsn) as nobody:
        for_all = set(list_privileges(table.dsn, nobody)) - EVERYBODY
    assert not [name for name in for_all if "rowferry" in name or "avatars" in name or "refund" in name]
    for purpose in PURPOSES:
        with subtests.test(purpose):
            own = [name for name in list_privileges(table.dsn, roles[purpose]) if name not in for_all]
            assert own == sorted(EXPECTED[purpose] | EVERYBODY)


def test_whatever_else_is_tried_is_refused(table: EntryTable, roles: Roles, subtests: pytest.Subtests) -> None:
    """The catalogue's word is put to the proof: each object, each way of touching it."""
    for purpose in PURPOSES:
        with subtests.test(purpose):
            check_refusals(table, roles, purpose)


def check_refusals(table: EntryTable, roles: Roles, purpose: Purpose) -> None:
    refused, allowed = 0, []
    with psycopg.connect(log_in(table, roles[purpose]), autocommit=True) as connection:
        for privilege, words in write_trials(table.dsn):
            if not may(EXPECTED[purpose], privilege):
                try:
                    connection.execute(words.encode())
                except errors.InsufficientPrivilege:
                    refused += 1
                else:
                    allowed.append(words)
    assert allowed == []
    assert refused > 200  # as many objects and ways as there are, whichever the role
