"""The commands know objects without rows: each says what it does with them, by their label."""

import json

import pytest

from support.entries.listed_objects import PREFIX, check_copies, name_objects, put_objects
from support.entries.migration import Migration

NAMES = [f"{number:02}.png" for number in range(12)]


@pytest.fixture
def listed(versitygw_migration: Migration) -> Migration:
    migration = name_objects(versitygw_migration)
    put_objects(migration, NAMES)
    return migration.write_plan()


def run(migration: Migration, *arguments: str, status: int = 0) -> str:
    one = ("--processes", "1") if arguments[0] in {"migrate", "verify", "revert"} else ()
    done = migration.run_here(*arguments, *one)
    assert done.returncode == status, done.stderr
    return done.stdout if status != 2 else done.stderr


def test_a_migration_lists_once_and_ends(listed: Migration) -> None:
    said = run(listed, "migrate", "--yes")
    assert "Migration avatars: variants/* in" in said
    assert "Pass 1: 0 entries in 1 new batch, variants/*: a listing\n" in said
    assert "Pass 2" not in said
    assert "objects copied 12, equal 0" in said
    assert "row updated" not in said
    assert "  migrated            12  object copied\n" in said
    check_copies(listed, NAMES)
    assert "objects copied 0, equal 12" in run(listed, "migrate", "--yes")


def test_a_listing_is_named_before_it_waits_reported_while_it_does_and_ended_by_the_next_migrate(
    listed: Migration,
) -> None:
    assert "variants/*: a listing would be enqueued\n" in run(listed, "migrate", "--yes", "--dry-run")
    assert listed.batches() == []
    run(listed, "enqueue", "--yes")
    said = run(listed, "report", "--manifest", "left.jsonl", status=1)
    assert "migrate: variants/*" in said
    (line,) = (listed.folder / "left.jsonl").read_text().splitlines()
    found = json.loads(line)
    assert (found["entries_of"], found["first"], found["entries"]) == ("variants/*", PREFIX, 0)
    assert "variants/*: no listing, as the pass before has not ended\n" in run(listed, "enqueue", "--yes")
    said = run(listed, "migrate", "--yes")
    assert "variants/*: the pass before has not ended; it goes on." in said
    assert "objects copied 12, equal 0" in said


def test_the_report_of_several_listings_and_a_verification_and_its_watch(listed: Migration) -> None:
    words = "of several passes: an entry may count more than once"
    for is_repeated in (False, True):
        listed.migrate()
        assert (words in listed.run("report").stdout) is is_repeated
    listed.production.delete("v/03.png")
    assert "  missing              1  no production object\n" in run(listed, "verify", status=1)
    assert "v/03.png" in run(listed, "errors") or "variants/03.png" in run(listed, "errors")
    watched = run(listed, "watch", "--queue", "verify", "--once")
    assert "missing 1" in watched
    assert "variants/*" in watched
    assert "repaired 1" in run(listed, "verify", "--repair", "--yes")
    check_copies(listed, NAMES)


def test_there_is_nothing_to_revert_and_a_pruned_queue_begins_anew(listed: Migration) -> None:
    listed.migrate()
    said = run(listed, "revert", "--yes", status=2)
    assert said.startswith(
        "rowferry: No row moves with the objects of variants/*, so there is nothing to revert: point "
    )
    check_copies(listed, NAMES)
    assert "Pruned" in run(listed, "prune", "--older-than", "0s", "--yes")
    assert "objects copied 0, equal 12" in run(listed, "migrate", "--yes")


@pytest.mark.soak
def test_rows_are_reverted_beside_objects_that_are_not(listed: Migration) -> None:
    listed.plan["entries"] = [{"table": "public.avatars", "id": "id", "key": "path", "from": "image/", "to": "avatar/"}]
    listed.write_plan().fill(3)
    assert "objects copied 15, " in run(listed, "migrate", "--yes")
    said = run(listed, "revert", "--yes")
    assert "variants/*: no row names these objects, so they are not reverted." in said
    assert "rows reverted 3" in said
    assert all(key is not None and key.startswith("image/") for key in listed.rows().values())


@pytest.mark.soak
def test_one_label_is_worked_on_alone(listed: Migration) -> None:
    listed.plan["objects"].append({"prefix": "other/", "name": "others"})
    put_objects(listed, ["a"], prefix="other/")
    listed.write_plan().migrate()
    assert "objects compared 1, " in run(listed, "verify", "--table", "others")
    assert "has variants/*, others" in run(listed, "verify", "--table", "avatars", status=2)
    one = ("--table", "variants/*", "--first", f"{PREFIX}03", "--last", f"{PREFIX}05.png")
    assert "objects compared 3, " in run(listed, "verify", *one)
    assert "--first and --last need --table" in run(listed, "verify", "--first", "a", status=2)


def test_the_plan_is_explained(listed: Migration) -> None:
    assert "  objects without rows\n    variants/…  becomes  v/…\n" in run(listed, "plan")
