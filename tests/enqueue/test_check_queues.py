"""`rowferry check` of [queue.NAME]: all that keeps a queue from its work is found before anything is enqueued."""

import json
from pathlib import Path

import pytest

from support.entries.entry_table import EntryTable
from support.postgres.roles import grant, log_in, new_roles
from support.processes.cli import Run, assert_went_well, refused
from support.queue.plug_in import FAULTY, PlugIn, write_plan


def check(run_rowferry: Run) -> dict[str, list[str]]:
    """Return what is found, by level."""
    findings = json.loads(run_rowferry("check", "--json").stdout)
    found: dict[str, list[str]] = {"fine": [], "note": [], "problem": []}
    for finding in findings:
        words = f"{finding['what']}; {finding['remedy']}" if finding["remedy"] else finding["what"]
        found[finding["level"]].append(words)
    return found


def test_queues_that_can_work_are_fine_also_beside_a_faulty_package(
    noted: EntryTable, run_rowferry: Run, tmp_path: Path, plug_in: PlugIn
) -> None:
    assert_went_well(run_rowferry("check"))
    found = check(run_rowferry)
    assert found["problem"] == []
    assert "queue note: public.avatars.path; then echo" in found["fine"]
    assert "queue echo: public.avatars.path" in found["fine"]
    assert "note looks at 1 tables, 1 readable" in found["fine"]
    plug_in.install("broken", FAULTY)
    write_plan(noted, tmp_path, {"faulty": {}, "note": {}})
    found = check(run_rowferry)
    assert [words for words in found["problem"] if "faulty" in words and "ModuleNotFoundError" in words]
    assert "queue note: public.avatars.path" in found["fine"]


Settings = dict[str, dict[str, object]]
NO_QUEUE = "There is no queue '{}' here (did you mean {}?): correct the name, or install its package"


FAULTS: tuple[tuple[Settings, str], ...] = (
    ({"nott": {}}, NO_QUEUE.format("nott", "note")),
    ({"note": {"then": ["eco"]}}, NO_QUEUE.format("eco", "echo")),
    ({"note": {"colum": "a"}}, "In the plan avatars, [queue.note] has an unknown key `colum`"),
    ({"note": {"weight": 0}}, "In the plan avatars, `queue.note.weight` is wrong: write a number above 0"),
    (
        {"note": {"then": ["echo"]}, "echo": {"then": ["note"]}},
        "the queues of the plan lead back to themselves by `then`",
    ),
    (
        {"note": {"of": "public.avatars.pat"}},
        "`of` of [queue.note] names public.avatars.pat, which the plan does not have; did you mean "
        "public.avatars.path?",
    ),
    ({"note": {"of": "s3://production/x/"}}, "the queue note cannot list s3://production/x/; name [[entries]]"),
    ({"note": {"of": "s3://elsewhere/x/"}}, "In [queue.note] of the plan avatars, `of` is 's3://elsewhere/x/'"),
    ({"items_alone": {"of": "public.avatars.path"}}, "the queue items_alone cannot work on public.avatars.path"),
    ({"verify": {}}, "the queue verify needs the legacy bucket, which the plan does not have; add [legacy]"),
    (
        {"note": {"column": "colour"}},
        "the table public.avatars has no column colour, which the queue note uses; correct [queue.note], or add it",
    ),
    (
        {"note": {"into": "public.nowhere"}},
        "there is no table public.nowhere, which the queue note uses; correct [queue.note]",
    ),
    ({"note": {"column": "odd"}}, "the table public.avatars has no column odd"),
    ({"note": {"then": ["items_alone"]}}, "the queue note hands rows on to items_alone, which takes none"),
    (
        {"verify": {"then": ["migrate"]}},
        "the queue migrate works on legacy rows, and those of public.avatars.path are production",
    ),
)
"""What a plan says of queues, and how the words begin that tell what is wrong with it."""


def test_each_fault_of_a_queue_is_found(
    noted: EntryTable, run_rowferry: Run, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for queue, fault in FAULTS:
        write_plan(noted, tmp_path, queue)
        with subtests.test(fault[:40]):
            found = check(run_rowferry)["problem"]
            assert [words for words in found if words.startswith(fault)], found
            refused(run_rowferry("check"))


def test_all_faults_of_all_queues_are_found_at_once_and_a_queue_s_own_check_has_its_say(
    noted: EntryTable, run_rowferry: Run, tmp_path: Path
) -> None:
    write_plan(noted, tmp_path, {"nott": {}, "note": {"column": "colour", "then": ["verify"]}, "echo": {"of": "x"}})
    found = check(run_rowferry)["problem"]
    for name in ("'nott'", "colour", "legacy", "production", "names x"):
        assert [words for words in found if name in words], (name, found)
    noted.execute("alter table public.avatars add column odd text")
    write_plan(noted, tmp_path, {"note": {"column": "odd"}})
    assert "the column is odd; name an even one" in check(run_rowferry)["problem"]


@pytest.mark.versions
def test_rights_that_a_queue_lacks_are_found(
    noted: EntryTable, run_rowferry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted.execute("alter table public.avatars add column colour text")
    write_plan(noted, tmp_path, {"note": {"column": "colour"}})
    with new_roles(noted.dsn) as roles:
        grant(noted, roles)
        monkeypatch.setenv("DATABASE_URL", log_in(noted, roles["worker"]))
        assert check(run_rowferry)["problem"] == []
        noted.execute(f'revoke select (colour) on public.avatars from "{roles["worker"]}"')
        noted.execute(f'revoke insert (value) on public.notes from "{roles["worker"]}"')
        found = check(run_rowferry)["problem"]
    assert "this role may not select colour of public.avatars; see `rowferry init --grants`" in found
    assert "this role may not insert value of public.notes; see `rowferry init --grants`" in found
