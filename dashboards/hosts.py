"""The table of hosts, which both dashboards have: the sick ones first, each with why; then the fleet."""

from grafana_foundation_sdk.builders import table

from colours import SICK
from frame import what_to_do
from kit import Answer, Look, Threshold, matching, no_value
from promql import CHOSEN, CLUSTER, FAILED, IS_MOVING, cpu, memory, of_database, percentile, rate
from sources import PROMETHEUS, at_once
from tables import WARN, Column, join_tables, only_with, show_table

FEW = 5
"""Of so many hosts each has a line, well or sick."""
THE_FLEET, THE_ENDED = "the fleet", "the ended"
"""What stands for a host's name in the lines that sum hosts up."""

# Of the chosen cluster, migration and queues, whichever host is chosen: a host is sick beside its fleet.
_WORK = f"{CLUSTER},{CHOSEN}"
_WINDOW = "5m"
_UP = f"group by (host) (rowferry_build_info{{{CLUSTER}}})"
_LIVE = of_database("rowferry_live_workers", "host")
_LOST = of_database("rowferry_lost_workers", "host")
_ENTRIES = rate("rowferry_entries_total", "host", _WORK, _WINDOW)
_PACE = f"({_ENTRIES} and on (host) {_UP})"
_OF_MEDIAN = f"({_PACE} / on () group_left () (quantile(0.5, {_PACE}) > 0))"
_FAILED = f"({rate('rowferry_entries_total', 'host', f'{_WORK},{FAILED}', _WINDOW)} / ({_ENTRIES} > 0))"
_REQUESTS = rate("rowferry_requests_total", "host, side", CLUSTER, _WINDOW)
_REFUSED = rate("rowferry_throttled_requests_total", "host, side", CLUSTER, _WINDOW)
_THROTTLED = f"max by (host) ({_REFUSED} / ({_REQUESTS} > 0))"
_SEEN = f"group by (host) (last_over_time(rowferry_build_info{{{CLUSTER}}}[$__range]))"
_ROWS = f"({_SEEN} or group by (host) ({_LIVE} > 0))"


def _singular(rows: str, words: str, one: str) -> str:
    """Return rows in which the words for a number of 1 are these."""
    return f'label_replace({rows}, "why", "{one}", "why", "{words.replace("$1", "1")}")'


def _tell(rank: int, words: str, values: str, fleet: str = "", *, one: str = "") -> str:
    """Return the rank of each host that has a value, labelled `why`: the words around the value, then the fleet's.

    `one`: the words where the value is 1.
    """
    told = f'label_replace(count_values by (host) ("n", round({values})), "why", "{words}", "n", "(.*)")'
    if fleet:
        fleets = f'count_values("fleet", round(quantile(0.5, {fleet})))'
        told = f'label_join({told} * on () group_left (fleet) {fleets}, "why", "", "why", "fleet")'
        told = f'label_replace({told}, "why", "$1 %", "why", "(.*)")'
    told = _singular(told, words, one) if one else told
    return f"{rank} * max by (host, why) ({told})"


def _tell_all() -> str:
    """Return the rank and the reason of each sick host: of several reasons the first, and the worse, the higher."""
    still = f"(time() - max_over_time(timestamp({_PACE.replace('[5m]', '[2m]')} > 0)[3h:1m])) / 60"
    idle = f"({still} and on (host) ({_LIVE} > 0) and on (host) {_UP}) > 10 and on () (quantile(0.5, {_PACE}) > 0)"
    of_fleet = f"100 * {_OF_MEDIAN}"
    reasons = (
        _tell(6, "finishes nothing for $1 min", idle),
        _tell(
            5,
            "$1 % fail, the fleet: ",
            f"100 * ({_FAILED} > 0.05) > on () group_left () (300 * quantile(0.5, {_FAILED}))",
            f"100 * {_FAILED}",
        ),
        _tell(3, "throttled $1 %", f"100 * ({_THROTTLED} > 0.05)"),
        f"2 * label_replace(({_LIVE} > 0) / ({_LIVE} > 0) unless on (host) {_UP} and on (host) {_SEEN}, "
        '"why", "its metrics are gone", "", "")',
        _tell(1, "$1 processes lost within the hour", f"{_LOST} > 0", one="1 process lost within the hour"),
        _tell(4, "$1 % of the fleet's rate", f"{of_fleet} < 50"),
    )
    return " or on (host) ".join(f"({reason})" for reason in reasons)


_WHY = f"({_tell_all()})"
_ENDED = f"({_SEEN} unless on (host) {_UP} unless on (host) ({_LIVE} > 0) unless on (host) ({_LOST} > 0))"
_WELL = f"({_ROWS} unless on (host) {_WHY} unless on (host) {_ENDED})"
_COUNT = f"count({_LIVE} > 0)"


def show_hosts(here: str, height: int, *, link: str = "") -> table.Panel:
    """Return a row for each sick host and one for the fleet.

    `here`: the selector of the hosts that are listed; empty: all. `link`: of a host's name.
    """
    listed = f"and on (host) last_over_time(rowferry_build_info{{{here}}}[$__range])" if here else ""
    columns = {name: _by_host(values, sums) for name, (values, sums) in _columns().items()}
    queries = {"rank": _rank(listed), **columns, "version of": _VERSIONS}
    targets = tuple(at_once(query, letter) for letter, query in zip("ABCDEFGHIJKL", queries.values(), strict=False))
    look = Look(
        "Hosts",
        "Of the chosen migration and queues. Sick hosts first, each with why: of several reasons, the first. Then the "
        f"medians of the fleet; of up to {FEW} hosts, the well ones have a line each. Copy p95: 95 % of the objects "
        "take less. Busiest CPU, red: a process uses a whole core. Ended: stopped by itself.",
        24,
        height,
        none="no worker has been seen",
        help=what_to_do("RowferryWorkerLost"),
    )
    shown = _looks(link)
    panel = show_table(look, Answer(PROMETHEUS, targets), *shown)
    return only_with(join_tables(panel, list(queries), [column.name for column in shown]), "why")


def _rank(listed: str) -> str:
    """Return the rows of the table, the worst first, each with its reason."""
    well = f'label_replace(0 * ({_WELL} and on () ({_COUNT} <= {FEW})), "why", "well", "", "")'
    many = f"{_WELL} and on () ({_COUNT} > {FEW})"
    more = _line(-1, THE_FLEET, "$1 are well; the medians:", many, "1 is well; the medians:")
    medians = _line(-1, THE_FLEET, "the medians of $1 hosts", f"{_LIVE} > 0", "one host")
    ended = _line(-2, THE_ENDED, "$1 hosts have ended", _ENDED, "1 host has ended")
    return f"sort_desc(({_WHY} or on (host) {well}) {listed} or ({more} or on (host) {medians}) or {ended})"


def _line(rank: int, name: str, words: str, hosts: str, one: str) -> str:
    """Return the line that sums hosts up, if there are any; `one`: the words for a single one."""
    told = f'label_replace(count_values("n", count({hosts})), "why", "{words}", "n", "(.*)")'
    told = _singular(told, words, one)
    return f'label_replace({rank} * max by (why) ({told}), "host", "{name}", "", "")'


def _by_host(values: str, sums: str) -> str:
    """Return a column: a value for each host, and one for the fleet. Hosts without a reason have no row in the end."""
    return f'{values} or label_replace({sums}{values}), "host", "{THE_FLEET}", "", "")'


def _columns() -> dict[str, tuple[str, str]]:
    """Return the values of each column by host, and how those of the fleet are summed."""
    median = "quantile(0.5, "
    copies = percentile(0.95, "rowferry_object_seconds", "host", _WORK)
    processes = f"({_LIVE} > 0 or {_LIVE} == 0 and {IS_MOVING})"
    return {
        "processes": (processes, "sum("),
        "lost (1 h)": (_LOST, "sum("),
        "entries/s": (_PACE, median),
        "of the median": (_OF_MEDIAN, median),
        "failed": (f"({_FAILED} and on (host) {_UP})", median),
        "copy p95": (f"({copies} >= 0 and on (host) {_UP})", median),
        "throttled": (f"({_THROTTLED} and on (host) {_UP})", median),
        "busiest CPU": (f"(max by (host) ({cpu()}) and on (host) {_UP})", median),
        "memory": (f"(sum by (host) ({memory()}))", median),
    }


_VERSIONS = f"topk by (host) (1, count by (host, version) (last_over_time(rowferry_build_info{{{CLUSTER}}}[$__range])))"


def _looks(link: str) -> tuple[Column, ...]:
    """Return how the columns look; a width shows what it holds as a whole."""
    here = "color-background"
    reasons = tuple(matching(f"/{words}/", colour) for colour, words in SICK.items())
    shares: tuple[Threshold, ...] = ((None, "transparent"), (0.01, "dark-orange"), (0.05, "dark-red"))
    fails: tuple[Threshold, ...] = ((None, "transparent"), (0.05, "dark-red"))
    slow: tuple[Threshold, ...] = ((None, "dark-red"), (0.25, "dark-orange"), (0.6, "transparent"))
    return (
        Column("host", url=link, whole=True),
        Column("why", width=260, cell=here, mappings=(*reasons, no_value("–", "transparent"))),
        Column("processes", width=95, steps=((None, "transparent"), (0, "dark-red"), (1, "transparent")), cell=here),
        Column("lost (1 h)", width=90, steps=WARN, cell=here),
        Column("entries/s", width=150, decimals=0, cell="gauge", steps=((None, "green"),)),
        Column("of the median", "percentunit", 120, 0, steps=slow, cell=here),
        Column("failed", "percentunit", 80, 1, steps=fails, cell=here),
        Column("copy p95", "s", 95, 2),
        Column("throttled", "percentunit", 95, 1, steps=shares, cell=here),
        Column("busiest CPU", "percentunit", 150, 0, steps=((None, "green"), (0.95, "red")), cell="gauge", most=1),
        Column("memory", "bytes", 95),
        Column("version", width=80),
    )
