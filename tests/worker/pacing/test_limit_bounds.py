"""The limit of objects in flight stays between the bounds that the user sets, whatever the servers say."""

import pytest

from rowferry_worker.pacing.in_flight import START
from support.entries.migration import Migration
from support.processes.processes import wait_for
from support.processes.scrape import scrape, served_port, sum_of
from support.s3.request_log import RequestLog

LIMIT = "rowferry_objects_in_flight_limit"


@pytest.mark.by_day("option", "processes")
@pytest.mark.parametrize(
    ("given", "least", "most"),
    [
        ("", 1, 15),
        ("--min-parallel=30", 30, 30),
        ("ROWFERRY_WORKER_MIN_PARALLEL=30", 30, 30),
        ("--min-parallel=30 --processes=2", 30, 60),
        ("--min-parallel=64", 64, 64),
    ],
    ids=["unbounded", "option", "variable", "processes", "fixed"],
)
def test_throttling_takes_the_limit_to_the_lower_bound_and_no_further(
    given: str, least: int, most: int, migration: Migration, log: RequestLog
) -> None:
    """Every write is refused: after so many refusals the limit is as low as it may be."""
    migration.given(200, 100)
    options = ["--parallel=64", "--metrics-port=0", *(word for word in given.split() if word.startswith("--"))]
    environment = dict(word.split("=") for word in given.split() if not word.startswith("--"))
    with (
        log.refusing(lambda seen: seen.writes_object, 503, "SlowDown"),
        migration.workers(1, *options, **environment) as (worker,),
    ):
        port = served_port(worker)
        wait_for(lambda: sum_of(scrape(port), "rowferry_throttled_requests_total") >= 20)
        wait_for(lambda: sum_of(scrape(port), LIMIT) <= most)
        assert sum_of(scrape(port), LIMIT) >= least
    migration.audit(legacy_left=range(1, 201))


@pytest.mark.parametrize(("arguments", "first"), [([], START), (["--parallel=2"], 2), (["--min-parallel=100"], 100)])
def test_the_metric_tells_the_limit_from_the_beginning(arguments: list[str], first: int, migration: Migration) -> None:
    with migration.workers(1, "--metrics-port=0", *arguments) as (worker,):
        port = served_port(worker)
        wait_for(lambda: sum_of(scrape(port), LIMIT) > 0)
        assert sum_of(scrape(port), LIMIT) == first
