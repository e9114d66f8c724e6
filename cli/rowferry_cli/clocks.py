"""By how much the clocks of the two servers differ, as a person is told it."""

from rowferry.errors import RowferryError
from rowferry.plan import Plan
from rowferry.s3.clocks import NO_SKEW, Skew
from rowferry_cli.reporter import Reporter
from rowferry_enqueue.checks.buckets.clocks import describe_skew, measure_skew
from rowferry_enqueue.checks.finding import Finding


def measure_clocks(plan: Plan, reporter: Reporter) -> Skew | None:
    """Return by how much the servers' clocks differ, and say so; None where that cannot be told from here."""
    left: list[Finding] = []
    try:
        skew = measure_skew(plan, left)
    except RowferryError:  # a server that is away is waited for by the workers, which measure it then
        return None
    for finding in left:
        reporter.print(f"Note: {finding.what}: {finding.remedy}.")
    if skew is not NO_SKEW:
        reporter.print(f"Clocks: {describe_skew(skew)}.")
    return skew
