"""Builds the whole page from the facts. Pure."""

from collections.abc import Iterator

from rowferry import __version__
from rowferry.queues import name_packages
from rowferry_cli.report.events import tabulate_events
from rowferry_cli.report.facts import Facts
from rowferry_cli.report.failures import Clean, build_reasons, describe_more, tabulate_retries
from rowferry_cli.report.hosts import tabulate_attempts, tabulate_hosts, tabulate_tries
from rowferry_cli.report.model import Page
from rowferry_cli.report.planned import describe_plan, list_dates, tabulate_passes, tabulate_settings, write_plan
from rowferry_cli.report.queue_parts import build_queues
from rowferry_cli.report.verdict import judge, judge_verification, list_tiles
from rowferry_cli.report.wording import write_moment
from rowferry_queues.verify.spec import VERIFY


def build_page(facts: Facts, clean: Clean) -> Page:
    """Return what the page shows. `clean` hides the secrets of foreign texts before they are cut."""
    migration = facts.migration
    verified = [batch for batch in facts.batches if batch.queue == VERIFY.name]
    deep, batches = sum(one.deep for one in verified), sum(one.batches for one in verified)
    return Page(
        migration=facts.report.migration,
        written=f"Database {migration.database}, as of {write_moment(migration.moment)}",
        verdict=judge(facts),
        tiles=list_tiles(facts),
        planned=describe_plan(facts),
        timeline=list_dates(facts),
        events=tabulate_events(facts.events, clean),
        queues=build_queues(facts),
        reasons=build_reasons(facts, clean),
        more_reasons=describe_more(facts),
        retries=tabulate_retries(facts.retries, clean),
        verification=judge_verification(facts.report, deep, batches),
        hosts=tabulate_hosts(facts),
        attempts=tabulate_attempts(facts),
        tries=tabulate_tries(facts),
        settings=tabulate_settings(facts),
        passes=tabulate_passes(facts.passes),
        versions=list(_list_versions(facts)),
        plan=write_plan(migration.plan),
    )


def _list_versions(facts: Facts) -> Iterator[tuple[str, str]]:
    yield "This page", f"rowferry {__version__}"
    yield "Schema", facts.migration.schema_version or "of an unknown version"
    workers = sorted({version for attempts in facts.attempts for version in attempts.versions})
    yield "Workers", ", ".join(f"rowferry {version}" for version in workers) or "none that the database still knows"
    yield "PostgreSQL", facts.migration.postgres
    for queue in facts.report.queues:
        yield f"Queue {queue}", name_packages(queue) or "not installed where the page was written"
