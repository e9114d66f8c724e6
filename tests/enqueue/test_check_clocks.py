"""The clocks of two servers: what is said of them, and what they are read from."""

import re
from datetime import timedelta

import pytest

from rowferry.plan_file import parse_plan
from rowferry.s3.clocks import NO_SKEW
from rowferry_cli.clocks import measure_clocks
from rowferry_cli.reporter import Reporter
from rowferry_enqueue.checks.buckets.clocks import measure_skew
from support.entries.migration import Migration
from torture.switching.wrong_clock import WrongClock, WrongTimesOfObjects


@pytest.mark.parametrize(("may_write", "seconds"), [(True, -7), (False, 0)])
def test_the_time_of_objects_is_read_from_objects(may_write: bool, seconds: int, moto_migration: Migration) -> None:
    with WrongTimesOfObjects(
        moto_migration.plan["production"]["endpoint_url"], timedelta(seconds=-7)
    ).running() as shifted:
        moto_migration.plan["production"]["endpoint_url"] = shifted.endpoint_url
        plan = parse_plan(moto_migration.plan, "of a test")
        skew = measure_skew(plan, [], may_write=may_write)
    assert skew.low <= seconds <= skew.high
    assert skew.high - skew.low < 2
    assert moto_migration.production.listing() == {}, "the probe is removed again"


def test_a_difference_is_said(moto_migration: Migration, capsys: pytest.CaptureFixture[str]) -> None:
    with WrongClock(moto_migration.plan["production"]["endpoint_url"], timedelta(seconds=60)).running() as shifted:
        moto_migration.plan["production"]["endpoint_url"] = shifted.endpoint_url
        measure_clocks(parse_plan(moto_migration.plan, "of a test"), Reporter(yes=True))
    said = capsys.readouterr().out
    assert re.match(r"Clocks: the production server's clock is (59|60)\.\d s ahead of the legacy server's, give", said)


def test_one_server_has_one_clock(moto_migration: Migration) -> None:
    assert measure_skew(parse_plan(moto_migration.plan, "of a test"), []) is NO_SKEW
