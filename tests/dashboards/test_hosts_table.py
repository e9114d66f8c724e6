"""The hosts' table of both dashboards: who lives, who has ended, who is sick; evaluated by Prometheus' own tool."""

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

# For 30 minutes all hosts work. Then `crashed` loses both processes, and `ended` ends by itself. All is done at 45.
SERIES = {
    'rowferry_build_info{host="busy", instance="w1", version="1"}': "1x60",
    'rowferry_build_info{host="crashed", instance="w2", version="1"}': "1x30 stale",
    'rowferry_build_info{host="ended", instance="w3", version="1"}': "1x30 stale",
    'rowferry_live_workers{host="busy", instance="e1"}': "2x60",
    'rowferry_live_workers{host="crashed", instance="e1"}': "2x30 0x30",
    'rowferry_live_workers{host="ended", instance="e1"}': "2x30 stale",
    'rowferry_lost_workers{host="busy", instance="e1"}': "0x60",
    'rowferry_lost_workers{host="crashed", instance="e1"}': "0x30 2x30",
    'rowferry_lost_workers{host="ended", instance="e1"}': "0x30 stale",
    'rowferry_entries_total{host="busy", instance="w1", queue="copy", outcome="migrated"}': "0+600x60",
    'rowferry_entries_total{host="crashed", instance="w2", queue="copy", outcome="migrated"}': "0+600x30 stale",
    'rowferry_entries_total{host="ended", instance="w3", queue="copy", outcome="migrated"}': "0+600x30 stale",
    'rowferry_migration_state{instance="e1", migration="m", state="running"}': "1x45 0x15",
    'rowferry_migration_state{instance="e1", migration="m", state="done"}': "0x45 1x15",
}
VALUES = {"$__range": "2h", "$__rate_interval": "2m", "$queue": ".+", "$host": ".+", "$instance": ".+"}


def read_columns(board: str) -> dict[str, str]:
    """Return the query of each column, as Prometheus gets it."""
    (panel,) = [panel for panel in list_panels(board) if panel["title"] == "Hosts"]
    names = panel["transformations"][1]["options"]["renameByName"]
    queries = {names[f"Value #{t['refId']}"]: t["expr"] for t in panel["targets"] if f"Value #{t['refId']}" in names}
    for variable, value in VALUES.items():
        queries = {name: query.replace(variable, value) for name, query in queries.items()}
    return queries


def check(folder: Path, expectations: dict[tuple[str, int], dict[str, float]]) -> None:
    """Fail unless each query, `minutes` after the start, has these values by host; a dash of the table is none."""
    tests = [
        {
            "expr": f"({query}) >= 0",
            "eval_time": f"{minutes}m",
            "exp_samples": [{"labels": f'{{host="{host}"}}', "value": value} for host, value in values.items()],
        }
        for (query, minutes), values in expectations.items()
    ]
    series = [{"series": name, "values": values} for name, values in SERIES.items()]
    document = {"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": tests}]}
    (folder / "hosts.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    command = [str(PROMTOOL), "test", "rules", "hosts.yml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("board", BOARDS)
def test_no_process_is_told_only_while_work_is_left(board: str, tmp_path: Path) -> None:
    processes = read_columns(board)["processes"]
    check(
        tmp_path,
        {
            (processes, 20): {"busy": 2, "crashed": 2, "ended": 2},
            (processes, 40): {"busy": 2, "crashed": 0},
            (processes, 55): {"busy": 2},
        },
    )


@pytest.mark.parametrize("board", BOARDS)
def test_a_loss_stays_told_and_a_clean_end_is_none(board: str, tmp_path: Path) -> None:
    check(tmp_path, {(read_columns(board)["lost (1 h)"], 55): {"busy": 0, "crashed": 2, "ended": 0}})


@pytest.mark.parametrize("board", BOARDS)
def test_a_host_that_has_ended_has_no_speed(board: str, tmp_path: Path) -> None:
    """The mean of the last minutes would go on to tell one."""
    columns = read_columns(board)
    expected = {"busy": 10.0}
    check(tmp_path, {(columns["entries/s"], 31): expected, (columns["failed"], 31): {"busy": 0}})


@pytest.mark.parametrize("board", BOARDS)
def test_no_host_and_no_column_vanishes(board: str, tmp_path: Path) -> None:
    columns = list(read_columns(board).values())
    assert len(columns) == 8
    rows = {(f"label_replace(count({query}), 'host', 'all', '', '')", 55): {"all": 3.0} for query in columns}
    check(tmp_path, rows)


def test_the_slowest_host_comes_first() -> None:
    """Rows of joined tables keep the order of the first answer, and `sort` puts what is no number last."""
    for board in BOARDS:
        (panel,) = [panel for panel in list_panels(board) if panel["title"] == "Hosts"]
        columns = panel["transformations"][1]["options"]
        assert panel["targets"][0]["expr"].startswith("sort(")
        assert columns["renameByName"]["Value #A"] == "entries/s"
        order = sorted(columns["indexByName"], key=columns["indexByName"].get)
        shown = [columns["renameByName"].get(name, name) for name in order]
        assert shown[:4] == ["host", "processes", "lost (1 h)", "entries/s"]
        assert shown[-1] == "version"
