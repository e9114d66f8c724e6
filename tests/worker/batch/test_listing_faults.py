"""Listings and ranges that meet faults: bounded, isolated, and taken up again."""

from collections.abc import Callable

import pytest

from rowferry_enqueue.enqueue import Within
from support.entries.listed_objects import PREFIX, TO, check_copies, name_objects, put_objects, ranges
from support.entries.migration import Migration
from support.postgres.roles import grant, log_in, new_roles
from support.queue.at_work import take_one_turn
from support.s3.listing_page import http, is_listing, page
from support.s3.request_log import LoggedRequest, RequestLog

NAMES = [f"{number:02}.png" for number in range(12)]
Matches = Callable[[LoggedRequest], bool]


@pytest.fixture
def listed(migration: Migration) -> Migration:
    """A migration of twelve objects whose listing waits."""
    name_objects(migration)
    migration.plan["migration"]["max_attempts"] = 2
    put_objects(migration, NAMES)
    migration.enqueue(5)
    return migration


def is_copy_of(name: str) -> Matches:
    return lambda seen: seen.writes_object and seen.key == TO + name


def requeue(migration: Migration) -> None:
    migration.execute("update rowferry.batch_queue set status = 'INIT' where status = 'ERROR'")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (["variants/b", "variants/a"], "UnorderedListing: the server lists 'variants/a' after 'variants/b'"),
        (["variants/a", "variants/a"], "UnorderedListing"),
        (["w/a"], "ForeignKeys: the listing of 'variants/' names 'w/a'"),
    ],
)
def test_a_hostile_listing_is_an_error_with_a_reason(
    listed: Migration, log: RequestLog, keys: list[str], reason: str
) -> None:
    with log.answering(is_listing, http(page(keys).body)):
        listed.work()
    (batch,) = listed.batches()
    assert (batch["status"], batch["attempts"], batch["entry_count"]) == ("ERROR", 1, 0)
    assert batch["error"].startswith(reason)
    shown = listed.run("errors")
    assert reason.partition(":")[0] in shown.stdout
    requeue(listed)
    listed.work()
    check_copies(listed, NAMES)
    assert listed.counts("migrate") == {"migrated": 12}


def test_a_response_that_is_no_listing_is_tried_again_and_then_an_error(listed: Migration, log: RequestLog) -> None:
    with log.answering(is_listing, http(b"<html>please log in</html>")):
        listed.work()
        assert [batch["status"] for batch in listed.batches()] == ["INIT"]
        listed.work_again()
    (batch,) = listed.batches()
    assert (batch["status"], batch["attempts"]) == ("ERROR", 2)
    assert "not S3's XML" in batch["error"]


LOGIN = b"HTTP/1.1 302 Found\r\nLocation: https://login.example.com/\r\nContent-Length: 0\r\n\r\n"
AWAY: dict[str, tuple[Matches, bytes]] = {
    "login page": (lambda seen: is_listing(seen) or bool(seen.key), LOGIN),
    "no answer": (is_listing, b""),
}


@pytest.mark.parametrize("answer", AWAY)
def test_what_stands_in_the_place_of_the_server_costs_a_listing_nothing(
    listed: Migration, log: RequestLog, answer: str
) -> None:
    with log.answering(*AWAY[answer]):
        listed.work()
    assert (listed.batch()["status"], listed.batch()["attempts"]) == ("INIT", 0)
    listed.work_again()
    check_copies(listed, NAMES)


def test_a_bucket_that_may_not_be_listed_costs_no_attempt(listed: Migration, log: RequestLog) -> None:
    with log.refusing(is_listing, 403, "AccessDenied"), listed.at_work() as take_turn:
        take_turn()
    (batch,) = listed.batches()
    assert (batch["status"], batch["attempts"]) == ("INIT", 0)
    (attempt,) = listed.attempts()
    assert attempt["verdict"] == "RELEASED"
    assert "cannot be listed: " in attempt["error"]
    assert "s3:ListBucket" in attempt["error"]
    listed.work()
    check_copies(listed, NAMES)


@pytest.mark.parametrize("denies_others", [False, True])
def test_a_prefix_that_may_not_be_listed_fails_by_name_and_the_rest_goes_on(
    listed: Migration, log: RequestLog, denies_others: bool
) -> None:
    """Whether the policy denies this prefix alone, or allows the other one alone."""
    listed.plan["objects"].append({"prefix": "open/", "to": "o/"})
    put_objects(listed, NAMES, "open/")
    listed.enqueue(5)

    def is_denied(seen: LoggedRequest) -> bool:
        is_meant = "prefix=variants" in seen.query or (denies_others and "prefix=open" not in seen.query)
        return is_listing(seen) and is_meant

    with log.refusing(is_denied, 403, "AccessDenied"):
        listed.work_again(times=3)
    (denied,) = [batch for batch in listed.batches() if batch["status"] != "DONE"]
    assert denied["status"] == "ERROR"
    assert "cannot be listed below 'variants/': " in denied["error"]
    assert denied["error"].endswith("; give the legacy credentials s3:ListBucket")
    assert listed.counts("migrate") == {"migrated": 12}
    assert not listed.execute("select from rowferry.migration where paused_at is not null")
    listed.requeue()
    listed.work_again()
    assert listed.counts("migrate") == {"migrated": 24}


def test_an_object_that_is_listed_still_is_missing_and_one_that_vanished_meanwhile_is_deleted(
    listed: Migration, log: RequestLog
) -> None:
    def delete(seen: LoggedRequest) -> None:
        if is_copy_of(NAMES[6])(seen):
            listed.legacy.delete(PREFIX + NAMES[6])

    with log.telling(delete), log.refusing(is_copy_of(NAMES[1]), 404, "NoSuchKey"):
        assert listed.work() == {"migrated": 10, "missing": 1, "deleted": 1}
    assert listed.failure_of(PREFIX + NAMES[1])[0] == "missing"
    assert listed.failure_of(PREFIX + NAMES[6])[1] == "object deleted"
    listed.check_balance()


def test_what_an_earlier_attempt_has_copied_counts_as_migrated_once(listed: Migration, log: RequestLog) -> None:
    with log.refusing(is_copy_of(NAMES[1]), 400, "InvalidRequest"):
        assert listed.work() == {"migrated": 11, "failed": 1}
    requeue(listed)
    assert listed.work() == {"migrated": 12}
    check_copies(listed, NAMES)


def test_a_later_pass_goes_around_what_is_in_error_and_takes_that_up_again(listed: Migration, log: RequestLog) -> None:
    with log.refusing(is_copy_of(NAMES[6]), 400, "InvalidRequest"):
        listed.work()
        put_objects(listed, ["07a.png", "10a.png"])
        listed.migrate(5)
    assert listed.counts("migrate") == {"migrated": 9, "kept": 11, "failed": 1}
    found = [(first.removeprefix(PREFIX), last.removeprefix(PREFIX)) for first, last in ranges(listed)]
    parts = [("00.png", "04.png"), ("05.png", "09.png"), ("10.png", "11.png")]
    assert found == [parts[0], *parts, parts[2]]
    listed.migrate(5)
    check_copies(listed, [*NAMES, "07a.png", "10a.png"])
    assert "failed" not in listed.counts("migrate")


def test_a_listing_in_error_is_taken_up_by_the_next_pass(listed: Migration, log: RequestLog) -> None:
    """Whose own listing lists only what is before it, which is nothing here."""
    with log.answering(is_listing, http(page(["w/a"]).body)):
        assert listed.work() == {}
    listed.migrate(5)
    check_copies(listed, NAMES)
    assert listed.counts("migrate") == {"migrated": 12}


def test_a_range_past_its_time_budget_puts_the_rest_back(listed: Migration) -> None:
    with listed.at_work() as take_turn:
        take_turn()
    take_one_turn(until=0.0)
    listed.work()
    check_copies(listed, NAMES)
    assert listed.counts("migrate") == {"migrated": 12}
    assert len(ranges(listed)) == 4


@pytest.mark.parametrize(
    ("limit", "within", "expected"),
    [
        (7, Within(), NAMES[:7]),
        (99, Within(), NAMES),
        (None, Within(first=PREFIX + "03.png", last=PREFIX + "05.png"), NAMES[3:6]),
        (None, Within(first="a", last="x"), NAMES),
        (None, Within(first="x"), []),
    ],
)
def test_a_pass_over_a_part(migration: Migration, limit: int | None, within: Within, expected: list[str]) -> None:
    name_objects(migration)
    put_objects(migration, NAMES)
    migration.migrate(3, limit=limit, within=within)
    check_copies(migration, expected)
    assert migration.counts("migrate") == ({"migrated": len(expected)} if expected else {})


def test_a_worker_lists_and_copies_with_its_grants_alone(migration: Migration) -> None:
    name_objects(migration)
    put_objects(migration, NAMES)
    migration.write_plan()
    with new_roles(migration.dsn) as roles:
        grant(migration, roles)
        run_as = {purpose: {"DATABASE_URL": log_in(migration, role)} for purpose, role in roles.items()}
        done = [
            migration.run("enqueue", "--yes", "--batch-size", "5", **run_as["enqueuer"]),
            migration.run("worker", "--until-empty", **run_as["worker"]),
        ]
    assert [each.returncode for each in done] == [0, 0], [each.stderr for each in done]
    check_copies(migration, NAMES)
