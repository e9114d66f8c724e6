"""`rowferry check` and the clocks of two servers: what it says of them, and what it reads them from."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest

from rowferry.plan_file import parse_plan
from rowferry.s3.clocks import NO_SKEW
from rowferry_enqueue.checks.buckets.clocks import check_clocks, measure_skew
from rowferry_enqueue.checks.finding import Finding
from support.entries.migration import Migration
from support.s3.buckets import Buckets
from torture.switching.wrong_clock import WrongClock, WrongTimesOfObjects


@pytest.fixture
def migration(moto_buckets: Buckets, make_migration: Callable[..., Migration]) -> Migration:
    return make_migration(moto_buckets, moto_buckets)


@pytest.mark.parametrize(("may_write", "seconds"), [(True, -7), (False, 0)])
def test_the_time_of_objects_is_read_from_objects(may_write: bool, seconds: int, migration: Migration) -> None:
    with WrongTimesOfObjects(migration.plan["production"]["endpoint_url"], timedelta(seconds=-7)).running() as shifted:
        migration.plan["production"]["endpoint_url"] = shifted.endpoint_url
        plan = parse_plan(migration.plan, "of a test")
        skew = measure_skew(plan, [], may_write=may_write)
    assert skew.low <= seconds <= skew.high
    assert skew.high - skew.low < 2
    assert migration.production.listing() == {}, "the probe is removed again"


def test_a_difference_is_said_and_clocks_that_agree_are_nothing_to_say(migration: Migration) -> None:
    url = migration.plan["production"]["endpoint_url"]
    found: list[Finding] = []
    for seconds in (0, 60):
        with WrongClock(url, timedelta(seconds=seconds)).running() as shifted:
            migration.plan["production"]["endpoint_url"] = shifted.endpoint_url
            found += check_clocks(parse_plan(migration.plan, "of a test"), may_write=True)
    (finding,) = found
    assert finding.level == "note"
    assert re.match(r"the production server's clock is (59|60)\.\d s ahead of the legacy server's, give", finding.what)


def test_one_server_has_one_clock(migration: Migration) -> None:
    assert measure_skew(parse_plan(migration.plan, "of a test"), []) is NO_SKEW
