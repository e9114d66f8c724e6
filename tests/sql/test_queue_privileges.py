"""The grants of a plan with queues: the columns that they read, the tables that they write, no other."""

from pathlib import Path

import pytest

from support.entries.entry_table import EntryTable
from support.postgres.privileges import list_privileges
from support.postgres.roles import grant, log_in, new_roles
from support.processes.cli import Run, well
from support.queue.plug_in import notes, write_plan

pytestmark = pytest.mark.versions

SIDE_TABLE = {
    *(f"SELECT public.notes({column})" for column in ("queue", "id", "value")),
    *(f"INSERT public.notes({column})" for column in ("queue", "id", "value")),
    "UPDATE public.notes(value)",
}


def test_a_role_may_do_what_the_queues_of_the_plan_need_and_nothing_else(
    noted: EntryTable, run_rowferry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted.execute("alter table public.avatars add column colour text, add column secret text")
    # What the queue of this test does beside: it counts how often it writes.
    write_plan(noted, tmp_path, {"note": {"column": "colour", "then": ["echo"]}})
    with new_roles(noted.dsn) as roles:
        grant(noted, roles)
        granted = {
            purpose: {words for words in list_privileges(noted.dsn, role) if " public.n" in words or "avatars" in words}
            for purpose, role in roles.items()
        }
        entries = {"SELECT public.avatars(id)", "SELECT public.avatars(path)"}
        assert granted == {
            "enqueuer": entries,
            "worker": entries | {"SELECT public.avatars(colour)"} | SIDE_TABLE,
            "operator": set(),
            "grafana": set(),
        }
        noted.execute(f'grant select (times), update (times) on public.notes to "{roles["worker"]}"')
        monkeypatch.setenv("DATABASE_URL", log_in(noted, roles["enqueuer"]))
        well(run_rowferry("enqueue", "--queue", "note", "--yes"))
        monkeypatch.setenv("DATABASE_URL", log_in(noted, roles["worker"]))
        well(run_rowferry("worker", "--until-empty", "--processes", "1"))
    assert notes(noted) == {"note": 30, "echo": 30}


def test_a_condition_of_a_queue_may_name_any_column(noted: EntryTable) -> None:
    noted.plan["production"] = {"bucket": "new"}
    noted.plan["queue"] = {"tag": {"set": {"tier": "cold"}, "where": "id > 7"}}
    with new_roles(noted.dsn) as roles:
        grant(noted, roles)
        for purpose in ("enqueuer", "worker"):
            granted = [words for words in list_privileges(noted.dsn, roles[purpose]) if "avatars" in words]
            assert granted == ["SELECT public.avatars"]


def test_the_grants_say_which_queue_needs_them(noted: EntryTable, run_rowferry: Run) -> None:
    shown = run_rowferry("init", "--grants", "app", "--for", "worker").stdout
    assert '-- The queue note: insert these columns of "public"."notes".' in shown
    assert 'grant insert ("queue", "id", "value") on "public"."notes" to "app";' in shown
    assert "update" not in shown.partition("avatars")[2].partition("-- The queue")[0]
