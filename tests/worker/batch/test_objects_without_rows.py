"""`[[objects]]`: what a prefix of the legacy bucket holds is copied once, by ranges of its listing."""

import pytest

from rowferry_worker.batch.sources import listing
from support.entries.listed_objects import PREFIX, TO, check_copies, name_objects, put_objects, ranges
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.queue.queue_runs import verify

NAMES = [f"{number:02}.png" for number in range(25)]


@pytest.fixture
def migration(migration: Migration) -> Migration:
    return name_objects(migration)


@pytest.fixture
def small_listings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listings of seven keys at a time."""
    monkeypatch.setattr(listing, "LISTED_KEYS", 7)


def overwrite_after(migration: Migration, name: str) -> None:
    """Overwrite the second legacy object so that it is newer than this production object."""
    written = migration.production.head(TO + name)["LastModified"]

    def overwrite() -> bool:
        migration.legacy.put(PREFIX + NAMES[1], b"new")
        return migration.legacy.head(PREFIX + NAMES[1])["LastModified"] > written

    wait_for(overwrite)


@pytest.mark.usefixtures("small_listings")
def test_every_object_below_the_prefix_is_copied(any_migration: Migration) -> None:
    migration = name_objects(any_migration)
    put_objects(migration, NAMES)
    put_objects(migration, ["a.png"], prefix="variant")
    put_objects(migration, ["b.png"], prefix="w/")
    assert [str(each) for each in migration.enqueue(5)] == ["variants/*: a listing"]
    migration.work()
    check_copies(migration, NAMES)
    assert migration.counts("migrate") == {"migrated": 25}
    assert migration.statuses() == {"DONE"}
    kinds = [batch["payload"]["objects"] for batch in migration.batches()]
    assert (kinds.count("listing"), kinds.count("range")) == (4, 7)
    assert migration.rows() == {}


def test_the_whole_bucket_keeps_its_keys(migration: Migration) -> None:
    name_objects(migration, prefix="", to=None)
    put_objects(migration, NAMES, prefix="")
    migration.migrate(10)
    check_copies(migration, NAMES, prefix="", to="")
    assert ranges(migration) == [("00.png", "09.png"), ("10.png", "19.png"), ("20.png", "24.png")]


def test_a_prefix_without_objects_is_done_at_once(migration: Migration) -> None:
    migration.migrate()
    assert [batch["status"] for batch in migration.batches()] == ["DONE"]


def test_strange_keys_are_copied_as_they_are(moto_migration: Migration) -> None:
    name_objects(moto_migration)
    names = ["", "a b", "a+b", "%41", "a//b", "é", "e\u0301", "😀", "<&>'\"", "\x7f", "a\tb", "ﾟ"]
    put_objects(moto_migration, names)
    moto_migration.migrate(3)
    check_copies(moto_migration, names)


def test_a_later_pass_takes_what_is_new(migration: Migration) -> None:
    put_objects(migration, NAMES[::2])
    migration.migrate(4)
    put_objects(migration, NAMES[1::2])
    migration.migrate(4)
    check_copies(migration, NAMES)
    assert migration.counts("migrate") == {"migrated": 25, "kept": 13}


def test_a_later_pass_copies_again_what_the_application_has_overwritten(migration: Migration) -> None:
    put_objects(migration, NAMES[:3])
    migration.migrate()
    overwrite_after(migration, NAMES[1])
    assert migration.migrate() == {"migrated": 4, "kept": 2}
    assert migration.production.read(TO + NAMES[1]) == b"new"


def test_a_range_in_error_takes_part_in_the_next_pass(migration: Migration) -> None:
    put_objects(migration, NAMES[:3])
    migration.production.put(TO + NAMES[1], b"written last, for a while")
    assert migration.migrate() == {"migrated": 2, "conflict": 1}
    overwrite_after(migration, NAMES[2])
    migration.legacy.put(PREFIX + NAMES[2], b"newer")
    assert migration.migrate() == {"migrated": 2, "kept": 1}
    assert [migration.production.read(TO + name) for name in NAMES[1:3]] == [b"new", b"newer"]
    migration.check_balance()


def test_an_enqueue_adds_no_listing_while_one_is_unfinished(migration: Migration) -> None:
    put_objects(migration, NAMES)
    migration.enqueue(4)
    (again,) = migration.enqueue(4)
    assert (again.batches, str(again)) == (0, "variants/*: no listing, as the pass before has not ended")
    assert migration.work() == {"migrated": 25}


def test_objects_that_were_added_to_a_range_are_copied_with_it(migration: Migration) -> None:
    put_objects(migration, NAMES[::2])
    migration.enqueue(100)
    with migration.at_work() as take_turn:
        take_turn()
        put_objects(migration, NAMES[1::2])
    migration.work()
    check_copies(migration, NAMES)
    assert migration.counts("migrate") == {"migrated": 25}


def test_a_range_that_has_grown_goes_back_in_part(migration: Migration) -> None:
    put_objects(migration, ["00.png", "24.png"])
    migration.enqueue(4)
    with migration.at_work() as take_turn:
        take_turn()
        put_objects(migration, NAMES)
    migration.work()
    check_copies(migration, NAMES)
    assert migration.counts("migrate") == {"migrated": 25}
    assert [first for first, _ in ranges(migration)] == [f"{PREFIX}{number:02}.png" for number in range(0, 25, 5)]


def test_an_object_that_was_deleted_after_it_was_listed_is_owed_to_nobody(migration: Migration) -> None:
    put_objects(migration, NAMES[:3])
    migration.enqueue()
    with migration.at_work() as take_turn:
        take_turn()
        migration.legacy.delete(PREFIX + NAMES[1])
        take_turn()
    check_copies(migration, [NAMES[0], NAMES[2]])
    assert migration.counts("migrate") == {"migrated": 2}


def test_a_different_production_object_is_a_conflict(migration: Migration) -> None:
    put_objects(migration, NAMES[:3])
    migration.production.put(TO + NAMES[1], b"another")
    assert migration.migrate() == {"migrated": 2, "conflict": 1}
    assert migration.failure_of(PREFIX + NAMES[1])[0] == "conflict"
    migration.execute('update rowferry.batch_queue set payload = payload || \'{"on_conflict": "overwrite"}\'')
    migration.execute("update rowferry.batch_queue set status = 'INIT' where status = 'ERROR'")
    migration.work()
    check_copies(migration, NAMES[:3])
    assert migration.counts("migrate") == {"migrated": 3}


def test_a_verification_holds_each_listed_object_against_its_copy(any_migration: Migration) -> None:
    migration = name_objects(any_migration)
    put_objects(migration, NAMES)
    migration.migrate(10)
    migration.production.put(TO + NAMES[3], b"damaged")
    migration.production.delete(TO + NAMES[4])
    verify(migration, 10)
    assert migration.counts("verify") == {"kept": 23, "missing": 1, "conflict": 1}
    assert migration.failure_of(PREFIX + NAMES[4])[:2] == ("missing", "NoProductionObject")
    verify(migration, 10, repair="all")
    check_copies(migration, NAMES)
    assert migration.counts("verify") == {"kept": 38, "migrated": 2}
    assert ranges(migration, "verify") == sorted(ranges(migration) + ranges(migration)[1:])
