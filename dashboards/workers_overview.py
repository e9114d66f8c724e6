"""The first screen of the dashboard *Workers*: six numbers about the chosen hosts, and a row for each."""

from grafana_foundation_sdk.builders import stat
from grafana_foundation_sdk.builders.dashboard import Dashboard, DashboardLink

from frame import CHOSEN_OF_WORKERS, board_url, explained_by_workers
from hosts import show_hosts
from kit import MOVES, Look, Threshold, prom, prom_now, show_stat
from promql import CLUSTER, FAILED, HERE, IS_MOVING, WORK, cpu, of_database, percentile, rate

LIVE_HERE = f'{CLUSTER},host=~"$host"'
SHARES: tuple[Threshold, ...] = ((None, "green"), (0.01, "orange"), (0.05, "red"))


def explained_by(panel: str) -> DashboardLink:
    """Return a link to the panel of this dashboard that says more, of the same hosts."""
    return explained_by_workers(panel, "host", "instance")


def add_overview(board: Dashboard) -> Dashboard:
    """Add the numbers, and a row for each host."""
    for panel in (_processes(), _entries(), _failed(), _throttled(), _latency(), _busiest()):
        board = board.with_panel(panel.span(4).height(5))
    chosen = board_url("workers", *CHOSEN_OF_WORKERS)
    return board.with_panel(show_hosts(HERE, 9, link=f"{chosen}&var-host=${{__value.raw}}"))


def _processes() -> stat.Panel:
    look = Look(
        "Processes",
        "Live worker processes; red: none, though entries are left.",
        none="none",
        steps=((None, "text"), (0, "red"), (1, "green")),
        links=(explained_by("Hosts"),),
    )
    live = f"sum({of_database('rowferry_live_workers', 'host', LIVE_HERE)}) > 0"
    return show_stat(look, prom_now(f"({live}) or vector(0) and {IS_MOVING}"))


def _entries() -> stat.Panel:
    look = Look(
        "Entries/s",
        "All outcomes, of the chosen migration and queues.",
        decimals=0,
        none="0",
        steps=MOVES,
        links=(explained_by("Entries a second by host"),),
    )
    return show_stat(look, prom(("", rate("rowferry_entries_total", "", WORK))), sparkline=True)


def _failed() -> stat.Panel:
    failed = rate("rowferry_entries_total", "", f"{WORK},{FAILED}")
    entries = rate("rowferry_entries_total", "", WORK)
    look = _look_of_share(
        "Failed", "Share of entries, of the chosen migration and queues.", "Entries a second by outcome"
    )
    return show_stat(look, prom_now(f"{failed} / ({entries} > 0)"))


def _throttled() -> stat.Panel:
    throttled = rate("rowferry_throttled_requests_total", "", HERE)
    requests = rate("rowferry_requests_total", "", HERE)
    words = "Share of requests that the servers throttled."
    look = _look_of_share("Throttled", words, "S3 faults a second by side and result")
    return show_stat(look, prom_now(f"{throttled} / ({requests} > 0)"))


def _look_of_share(title: str, words: str, explained: str) -> Look:
    """Return how a share that should be small looks; `explained`: the panel that says more."""
    return Look(
        title, words, unit="percentunit", decimals=1, none="0 %", steps=SHARES, links=(explained_by(explained),)
    )


def _latency() -> stat.Panel:
    look = Look(
        "S3 p95",
        "95 % of the requests take less; both sides.",
        unit="s",
        decimals=2,
        none="no request",
        links=(explained_by("S3 requests by side"),),
    )
    return show_stat(look, prom_now(f"{percentile(0.95, 'rowferry_request_seconds', '', HERE)} >= 0"))


def _busiest() -> stat.Panel:
    look = Look(
        "Busiest process",
        "CPU of the process that uses the most; it cannot use more than one core.",
        unit="percentunit",
        decimals=0,
        none="no process",
        steps=((None, "text"), (0, "green"), (0.95, "red")),
        links=(explained_by("CPU by process"),),
    )
    return show_stat(look, prom_now(f"max({cpu(HERE)})"))
