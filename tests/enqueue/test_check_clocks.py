"""The clocks of two servers: what is said of them, and what they are read from."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest

from rowferry.plan_file import parse_plan
from rowferry.s3.clocks import NO_SKEW
from rowferry_cli.clocks import measure_clocks
from rowferry_cli.reporter import Reporter
from rowferry_enqueue.checks.buckets.clocks import measure_skew
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


def test_a_difference_is_said(migration: Migration, capsys: pytest.CaptureFixture[str]) -> None:
    with WrongClock(migration.plan["production"]["endpoint_url"], timedelta(seconds=60)).running() as shifted:
        migration.plan["production"]["endpoint_url"] = shifted.endpoint_url
        measure_clocks(parse_plan(migration.plan, "of a test"), Reporter(yes=True))
    said = capsys.readouterr().out
    assert re.match(r"Clocks: the production server's clock is (59|60)\.\d s ahead of the legacy server's, give", said)


def test_one_server_has_one_clock(migration: Migration) -> None:
    assert measure_skew(parse_plan(migration.plan, "of a test"), []) is NO_SKEW
