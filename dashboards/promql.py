"""Queries of Prometheus, of the workers that a selector finds, such as `host=~"$host"`."""

from colours import ATTENTION, OUTCOMES, STEPS

FAILED = f'outcome=~"{"|".join(ATTENTION)}"'
CLUSTER = 'cluster=~"$cluster",job=~"$job"'
"""What the variables of both dashboards select: one database of several in a Prometheus. The labels may be absent."""
HERE = f'{CLUSTER},host=~"$host",instance=~"$instance"'
"""The workers that the variables of the dashboard Workers select."""
CHOSEN = 'migration=~"$migration",queue=~"$queue"'
"""Labels of the chosen work. It is added up over queues; what still waits in them never is: they share entries."""
WORK = f"{HERE},{CHOSEN}"
HAS_WORK_HERE = (
    f'rowferry_migration_state{{{CLUSTER},migration=~"$migration",state=~"running|stalled|waiting|no_workers"}}'
)
"""1 for a migration with work left that is not paused."""
IS_MOVING = f"on () (sum({HAS_WORK_HERE}) > 0)"
"""Only while a migration that is not paused has entries left: `... and` this."""
_OF_WORKERS = "and on (job, instance) rowferry_build_info"
"""Other programs have the same metrics of processes."""


def rate(metric: str, by: str = "", selector: str = CLUSTER, window: str = "$__rate_interval") -> str:
    """Return how fast a counter grows, summed by labels."""
    return f"sum{_by(by)} (rate({metric}{{{selector}}}[{window}]))"


def gauge(metric: str, by: str = "", selector: str = CLUSTER) -> str:
    """Return the sum of a gauge of workers."""
    return f"sum{_by(by)} ({metric}{{{selector}}})"


def of_database(metric: str, by: str, selector: str = CLUSTER) -> str:
    """Return the sum of a gauge of exporters; several that read one database, or one cluster's, count once."""
    return f"sum by ({by}) (max by (cluster, {by}) ({metric}{{{selector}}}))"


def cpu(selector: str = CLUSTER) -> str:
    """Return how much of a core each process of a worker uses, 0 to 1."""
    return f"rate(process_cpu_seconds_total{{{selector}}}[$__rate_interval]) {_OF_WORKERS}"


def memory(selector: str = CLUSTER) -> str:
    """Return the resident memory of each process of a worker, in bytes."""
    return f"process_resident_memory_bytes{{{selector}}} {_OF_WORKERS}"


def percentile(share: float, histogram: str, by: str = "", selector: str = CLUSTER) -> str:
    """Return a percentile of a histogram, by labels; not a number where nothing was observed."""
    labels = ", ".join(filter(None, ["le", by]))
    return f"histogram_quantile({share}, {rate(f'{histogram}_bucket', labels, selector)})"


def percentiles(histogram: str, selector: str) -> tuple[tuple[str, str], ...]:
    """Return the curves of the percentiles that matter, with their legends."""
    shares = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    return tuple((name, percentile(share, histogram, "", selector)) for name, share in shares)


def by_step(selector: str) -> tuple[tuple[str, str], ...]:
    """Return the seconds that all slots spend in each step, per second, in the order of the steps."""
    return tuple(
        (name, rate("rowferry_step_seconds_total", "", f'step="{step}",{selector}'))
        for step, (name, _) in STEPS.items()
    )


def by_share_of_step(selector: str) -> tuple[tuple[str, str], ...]:
    """Return the share of each step in the time of all slots, in the order of the steps."""
    whole = rate("rowferry_step_seconds_total", "", selector)
    return tuple((name, f"{spent} / ({whole} > 0)") for name, spent in by_step(selector))


def by_outcome(selector: str) -> tuple[tuple[str, str], ...]:
    """Return the entries a second of each outcome, in the order of the outcomes."""
    return tuple((name, rate("rowferry_entries_total", "", f'outcome="{name}",{selector}')) for name in OUTCOMES)


def _by(labels: str) -> str:
    return f" by ({labels})" if labels else ""
