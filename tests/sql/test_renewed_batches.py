"""Which batches a new pass renews, and what becomes of their choices and counts."""

from collections.abc import Mapping
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from support.queue.lines import Lines

MIGRATIONS = ("m", "other")
PAYLOAD = {"entries": "public.a.key", "read_again": ["migrated", "kept"], "pass": 1}
CHOICES = {"read_again": ["migrated"], "pass": 2}

INSERT = """
insert into rowferry.batch_queue (
    migration_id, queue_name, payload, entry_count, status, finished_at, migrated, kept, failed
)
select
    m.id, %(queue)s, %(payload)s, 8 + f.failed, %(status)s, case when %(status)s <> 'INIT' then now() end, 5, 3,
    f.failed
from rowferry.migration as m, (select case when %(status)s = 'DONE' then 0 else 2 end as failed) as f
where m.name = %(migration)s
returning id
"""


def add(
    lines: Lines,
    payload: Mapping[str, Any] = PAYLOAD,
    status: str = "ERROR",
    *,
    queue: str = "migrate",
    migration: str = "m",
) -> int:
    """Add a batch of which five entries are migrated, three kept, and two failed, unless it is DONE."""
    chosen = {"queue": queue, "payload": Jsonb(payload), "status": status, "migration": migration}
    (row,) = lines.session.execute(INSERT, chosen).fetchall()
    return row["id"]


def renew(lines: Lines, choices: Mapping[str, Any] = CHOICES, label: str | None = None) -> int:
    """Renew what a pass of the queue `migrate` of the migration `m` renews; return how many batches."""
    query = "select rowferry.renew_batches(id, 'migrate', %s, %s) as renewed from rowferry.migration where name = 'm'"
    (row,) = lines.session.execute(query, (Jsonb(choices), label)).fetchall()
    return row["renewed"]


def read(lines: Lines, batch_id: int) -> dict[str, Any]:
    (row,) = lines.session.execute("select * from rowferry.batch_queue where id = %s", (batch_id,)).fetchall()
    return row


def renewed(lines: Lines, *ids: int) -> list[bool]:
    return [read(lines, batch_id)["payload"].get("pass") == CHOICES["pass"] for batch_id in ids]


@pytest.mark.parametrize("status", ["INIT", "ERROR"])
def test_a_batch_that_waits_or_is_in_error_is_due_with_the_new_choices(lines: Lines, status: str) -> None:
    batch_id = add(lines, PAYLOAD | {"deep": True}, status)
    assert renew(lines) == 1
    batch = read(lines, batch_id)
    assert (batch["status"], batch["payload"]) == ("INIT", PAYLOAD | {"deep": True} | CHOICES)


def test_no_other_batch_is_renewed(lines: Lines) -> None:
    left = [add(lines, migration="other"), add(lines, queue="verify"), add(lines, status="DONE")]
    before = [read(lines, batch_id) for batch_id in left]
    batch_id = add(lines)
    assert renew(lines) == 1
    assert renewed(lines, batch_id) == [True]
    assert [read(lines, each) for each in left] == before


def test_batches_whose_settled_entries_are_not_read_again_stay_as_they_are(lines: Lines) -> None:
    batch_id = add(lines, {"entries": "public.a.key", "pass": 1})
    assert renew(lines) == 0
    reads_again = add(lines)
    assert renew(lines, {"pass": 2}) == 0, "nor those that would, in a pass that does not"
    assert renewed(lines, batch_id, reads_again) == [False, False]


def test_a_pass_over_one_table_renews_its_batches_alone(lines: Lines) -> None:
    first, second = add(lines), add(lines, PAYLOAD | {"entries": "public.b.key"})
    assert renew(lines, label="public.b.key") == 1
    assert renewed(lines, first, second) == [False, True]
    assert renew(lines) == 2


def test_a_claimed_batch_is_left_to_its_worker(lines: Lines, any_database: str) -> None:
    """Nor is it waited for: the worker may take hours."""
    held, free = add(lines), add(lines)
    lines.session.execute("set lock_timeout = '100ms'")
    with psycopg.connect(any_database) as worker:
        worker.execute("select from rowferry.batch_queue where id = %s for update", (held,))
        assert renew(lines) == 1
    assert renewed(lines, held, free) == [False, True]


def test_a_switch_and_a_beginning_are_forgotten_unless_the_choices_name_them(lines: Lines) -> None:
    own = PAYLOAD | {"switched_at": "2026-01-01", "is_begun": True}
    batch_id = add(lines, own)
    renew(lines)
    assert read(lines, batch_id)["payload"] == PAYLOAD | CHOICES
    batch_id = add(lines, own)
    renew(lines, CHOICES | {"switched_at": "2026-02-02"})
    assert read(lines, batch_id)["payload"] == PAYLOAD | CHOICES | {"switched_at": "2026-02-02"}


def test_what_was_left_is_read_with_all_again_where_that_is_tracked(lines: Lines) -> None:
    tracked, other = add(lines, PAYLOAD | {"unsettled": ["1"]}), add(lines)
    assert renew(lines) == 2
    assert read(lines, tracked)["payload"] == PAYLOAD | CHOICES | {"unsettled": None}
    assert read(lines, other)["payload"] == PAYLOAD | CHOICES


@pytest.mark.parametrize(
    ("read_again", "counted"),
    [(["migrated", "kept"], (0, 0)), (["kept"], (5, 0)), (["migrated"], (0, 3)), ([], (5, 3))],
)
def test_entries_that_the_batch_reads_again_are_not_counted_until_then(
    lines: Lines, read_again: list[str], counted: tuple[int, int]
) -> None:
    """It goes by what the batch has read so far, whatever the pass reads."""
    batch_id = add(lines, PAYLOAD | {"read_again": read_again})
    assert renew(lines) == 1
    batch = read(lines, batch_id)
    assert (batch["migrated"], batch["kept"]) == counted


def test_rows_that_had_gone_elsewhere_are_counted_anew(lines: Lines) -> None:
    """They are read again with all others: the next verdict would take them out of the counts of the pass before."""
    batch_id = add(lines)
    lines.session.execute("update rowferry.batch_queue set changed = 2, kept = 1 where id = %s", (batch_id,))
    lines.session.execute(
        "insert into rowferry.entry_failure (batch_id, entry_id, key, outcome, reason, error, attempt)"
        " select %s, n::text, 'key', 'changed', 'RowChanged', '', 1 from generate_series(1, 2) as n",
        (batch_id,),
    )
    assert renew(lines) == 1
    batch = read(lines, batch_id)
    assert (batch["changed"], batch["entry_count"]) == (0, 10)
    assert lines.session.execute("select from rowferry.entry_failure").fetchall() == []
