"""Expressions of Prometheus about the workers that a selector finds, such as `host=~"$host"`."""

from colours import ATTENTION, OUTCOMES, STEPS

FAILED = f'outcome=~"{"|".join(ATTENTION)}"'
HERE = 'host=~"$host",instance=~"$instance"'
"""The workers that the variables of the dashboard Workers select."""
HAS_WORK = 'rowferry_migration_state{state=~"running|stalled|waiting|no_workers"}'
"""1 for a migration with work left that is not paused."""
IS_MOVING = f"on () (sum({HAS_WORK}) > 0)"
"""Only while a migration that is not paused has entries left: `... and` this."""
QUEUE = f'{HERE},queue=~"$queue"'
WORK = f'{QUEUE},migration=~"$migration"'
"""Labels of what belongs to a queue: entries are never added up over queues, which work on the same ones."""
_OF_WORKERS = "and on (job, instance) rowferry_build_info"
"""Other programs have the same metrics of processes."""


def rate(metric: str, by: str = "", selector: str = "") -> str:
    """Return how fast a counter grows, summed by labels."""
    return f"sum{_by(by)} (rate({metric}{{{selector}}}[$__rate_interval]))"


def gauge(metric: str, by: str = "", selector: str = "") -> str:
    """Return the sum of a gauge."""
    return f"sum{_by(by)} ({metric}{{{selector}}})"


def cpu(selector: str = "") -> str:
    """Return how much of a core each process of a worker uses, 0 to 1."""
    return f"rate(process_cpu_seconds_total{{{selector}}}[$__rate_interval]) {_OF_WORKERS}"


def memory(selector: str = "") -> str:
    """Return the resident memory of each process of a worker, in bytes."""
    return f"process_resident_memory_bytes{{{selector}}} {_OF_WORKERS}"


def percentile(share: float, histogram: str, by: str = "", selector: str = "") -> str:
    """Return a percentile of a histogram, by labels; not a number where nothing was observed."""
    labels = ", ".join(filter(None, ["le", by]))
    return f"histogram_quantile({share}, {rate(f'{histogram}_bucket', labels, selector)})"


def percentiles(histogram: str, selector: str) -> tuple[tuple[str, str], ...]:
    """Return the curves of the percentiles that matter, of each queue, with their legends."""
    shares = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    return tuple((f"{name} {{{{queue}}}}", percentile(share, histogram, "queue", selector)) for name, share in shares)


def by_step(selector: str) -> tuple[tuple[str, str], ...]:
    """Return the seconds that all slots spend in each step, per second, of each queue, in the order of the steps."""
    spent = {step: rate("rowferry_step_seconds_total", "queue", f'step="{step}",{selector}') for step in STEPS}
    return tuple((f"{step} {{{{queue}}}}", expression) for step, expression in spent.items())


def by_outcome(selector: str) -> tuple[tuple[str, str], ...]:
    """Return the entries a second of each outcome and queue, in the order of the outcomes."""
    found = {name: rate("rowferry_entries_total", "queue", f'outcome="{name}",{selector}') for name in OUTCOMES}
    return tuple((f"{name} {{{{queue}}}}", expression) for name, expression in found.items())


def _by(labels: str) -> str:
    return f" by ({labels})" if labels else ""
