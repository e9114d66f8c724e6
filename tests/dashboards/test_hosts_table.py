"""The hosts' table of both dashboards: who is sick, and why; who has ended; evaluated by Prometheus' own tool."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from support.screens.grafana import BOARDS, list_panels

PROMTOOL = shutil.which("promtool")
pytestmark = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not on PATH; Debian's package `prometheus` has it"
)

# Eight hosts work for an hour, each at ten entries a second, unless it is sick from the 30th minute on.
SERIES = {'rowferry_migration_state{instance="e1", migration="m", state="running"}': "1x60 0x60"}
HOSTS = ("well-1", "well-2", "well-3", "idle", "failing", "slow", "throttled", "lost", "unseen", "ended")
for _number, _host in enumerate(HOSTS):
    _of = f'host="{_host}", instance="w{_number}"'
    _work = f'{_of}, migration="m", queue="copy"'
    _seen = "1x30 stale" if _host in {"unseen", "ended"} else "1x120"
    _pace = {"idle": "0+600x30 18000x90", "slow": "0+600x30 18060+60x90"}.get(_host, "0+600x120")
    _failed = {"failing": "0+6x30 480+300x90", "slow": "0x120"}.get(_host, "0+6x120")
    _refused = "0x30 0+120x90" if _host == "throttled" else "0x120"
    _live = {"lost": "2x30 1x90", "ended": "2x30 stale"}.get(_host, "2x120")
    SERIES |= {
        f'rowferry_build_info{{{_of}, version="1"}}': _seen,
        f'rowferry_entries_total{{{_work}, outcome="migrated"}}': _pace if "stale" not in _seen else "0+600x30 stale",
        f'rowferry_entries_total{{{_work}, outcome="failed"}}': _failed if "stale" not in _seen else "0+6x30 stale",
        f'rowferry_requests_total{{{_of}, side="production", result="ok"}}': "0+600x120",
        f'rowferry_throttled_requests_total{{{_of}, side="production"}}': _refused,
        f'rowferry_live_workers{{instance="e1", host="{_host}"}}': _live,
        f'rowferry_lost_workers{{instance="e1", host="{_host}"}}': "0x30 1x90" if _host == "lost" else "0x120",
    }
SERIES['rowferry_entries_total{host="idle", instance="w3", migration="m", queue="copy", outcome="failed"}'] = "0x120"
VALUES = {
    "$__range": "2h", "$__rate_interval": "2m", "$queue": ".+", "$migration": "m", "$host": ".+", "$instance": ".+",
    "$cluster": ".*", "$job": ".*",
}  # fmt: skip


def read_columns(board: str, **values: str) -> dict[str, str]:
    """Return the query of each column, as Prometheus gets it."""
    (panel,) = [panel for panel in list_panels(board) if panel["title"] == "Hosts"]
    names = panel["transformations"][1]["options"]["renameByName"]
    queries = {names.get(f"Value #{t['refId']}", t["refId"]): t["expr"] for t in panel["targets"]}
    for variable, value in (VALUES | {f"${name}": value for name, value in values.items()}).items():
        queries = {name: query.replace(variable, value) for name, query in queries.items()}
    return queries


def check(folder: Path, query: str, minutes: int, expected: dict[str, float], series: dict[str, str]) -> None:
    """Fail unless a query, `minutes` after the start, has these values by labels."""
    samples = [{"labels": labels, "value": value} for labels, value in expected.items()]
    test = {"expr": query, "eval_time": f"{minutes}m", "exp_samples": samples}
    given = [{"series": name, "values": values} for name, values in series.items()]
    document = {"tests": [{"interval": "1m", "input_series": given, "promql_expr_test": [test]}]}
    (folder / "hosts.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    command = [str(PROMTOOL), "test", "rules", "hosts.yml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def told(**reasons: str) -> dict[str, float]:
    """Return what the table's rows are: ranks by the labels of hosts, whose names have `-` in place of `_`."""
    ranks = {
        "finishes": 6,
        "% fail": 5,
        "of the fleet": 4,
        "throttled": 3,
        "gone": 2,
        "lost": 1,
        "medians": -1,
        "ended": -2,
    }
    found: dict[str, float] = {}
    for name, why in reasons.items():
        rank = next((rank for words, rank in ranks.items() if words in why), 0)
        found[f'{{host="{name.replace("_", "-")}", why="{why}"}}'] = rank
    return found


@pytest.mark.parametrize("board", BOARDS)
def test_each_sick_host_comes_first_and_says_why(board: str, tmp_path: Path) -> None:
    """Those that the database alone knows are told on Migration; Workers shows whom Prometheus has seen."""
    expected = told(
        idle="finishes nothing for 29 min",
        failing="33 % fail, the fleet: 1 %",
        slow="10 % of the fleet's rate",
        throttled="throttled 20 %",
        unseen="its metrics are gone",
        lost="1 process lost within the hour",
    )
    expected |= {
        '{host="the fleet", why="3 are well; the medians:"}': -1,
        '{host="the ended", why="1 host has ended"}': -2,
    }
    check(tmp_path, read_columns(board)["A"], 60, expected, SERIES)


@pytest.mark.parametrize("board", BOARDS)
def test_of_few_hosts_the_well_ones_have_a_line_each(board: str, tmp_path: Path) -> None:
    few = {name: values for name, values in SERIES.items() if any(each in name for each in ("well", "idle", "state"))}
    expected = told(idle="finishes nothing for 29 min", well_1="well", well_2="well", well_3="well")
    expected['{host="the fleet", why="the medians of 4 hosts"}'] = -1
    check(tmp_path, read_columns(board)["A"], 60, expected, few)


def test_nothing_is_sick_beside_a_fleet_that_has_nothing_to_do(tmp_path: Path) -> None:
    still = {name: "1x120" if "build_info" in name else values for name, values in SERIES.items() if "well" in name}
    still = {name: "100x120" if "entries_total" in name else values for name, values in still.items()}
    expected = told(well_1="well", well_2="well", well_3="well")
    expected['{host="the fleet", why="the medians of 3 hosts"}'] = -1
    check(tmp_path, read_columns("migration")["A"], 60, expected, still)


def test_the_fleet_has_medians_beside_each_host(tmp_path: Path) -> None:
    two = {name: values for name, values in SERIES.items() if "well-1" in name or "well-2" in name or "slow" in name}
    expected = {'{host="well-1"}': 1.0, '{host="well-2"}': 1.0, '{host="slow"}': 1.0 / 10.1, '{host="the fleet"}': 1.0}
    query = f"round({read_columns('migration')['of the median']}, 0.0001)"
    check(tmp_path, query, 60, {host: round(value, 4) for host, value in expected.items()}, two)


def test_two_exporters_of_one_database_count_its_workers_once(tmp_path: Path) -> None:
    twice = {
        f'rowferry_live_workers{{cluster="{cluster}", instance="{exporter}", host="busy"}}': f"{live}x60"
        for cluster, exporter, live in (("prod", "e1", 2), ("prod", "e2", 2), ("staging", "e3", 3))
    }
    both = {'{host="busy"}': 5.0, '{host="the fleet"}': 5.0}
    check(tmp_path, read_columns("migration")["processes"], 30, both, twice)
    one = {'{host="busy"}': 2.0, '{host="the fleet"}': 2.0}
    check(tmp_path, read_columns("migration", cluster="prod")["processes"], 30, one, twice)


def test_no_process_is_told_only_while_work_is_left(tmp_path: Path) -> None:
    gone = {
        'rowferry_live_workers{instance="e1", host="crashed"}': "2x30 0x90",
        'rowferry_migration_state{instance="e1", migration="m", state="running"}': "1x60 0x60",
    }
    query = read_columns("migration")["processes"]
    check(tmp_path, query, 45, {'{host="crashed"}': 0.0, '{host="the fleet"}': 0.0}, gone)
    check(tmp_path, query, 90, {}, gone)
