"""The alerts are silent in healthy migrations, and each tells its own fault: in promtool, and Grafana's on a queue."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from support.docs.doc_pages import ROOT
from support.queue.lines import Lines
from support.queue.rows import add, add_worker, change
from support.screens.grafana import FOLDER, PROMETHEUS, URGENT

RUNBOOK = ROOT / "docs" / "runbook.md"
PROMTOOL = shutil.which("promtool")


@pytest.fixture
def lines(database: str) -> Iterator[Lines]:
    with closing(Lines(database)) as lines:
        lines.register("m")
        yield lines


def ask(lines: Lines) -> list[str]:
    """Return the severity of each migration that Grafana's own alert fires for."""
    rows = lines.session.execute(URGENT.encode()).fetchall()
    assert all({type(value) for name, value in row.items() if name != "value"} == {str} for row in rows), "its labels"
    return [row["severity"] for row in rows]


NEEDS_PROMTOOL = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not on PATH; Debian's package `prometheus` has it"
)


def play(*words: str) -> str:
    """Return what promtool says of tests of rules; fails where they do."""
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@NEEDS_PROMTOOL
def test_prometheus_evaluates_the_alerts_as_told() -> None:
    """By the command of the runbook."""
    (command,) = re.findall(r"^promtool .*$", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE)
    said = play("sh", "-c", command)
    assert said.count("SUCCESS") == len([*(FOLDER / "prometheus" / "tests").glob("*.yml")]) == 2


@NEEDS_PROMTOOL
def test_a_sick_migration_fires_one_alert_and_no_other(tmp_path: Path) -> None:
    document = yaml.safe_load((FOLDER / "prometheus" / "tests" / "rules_test.yml").read_text(encoding="utf-8"))
    document["rule_files"] = [str(PROMETHEUS.parent / name) for name in ("recording.yml", "alerts.yml")]
    for test in document["tests"]:
        fired = [one for one in test.get("alert_rule_test", ()) if one["exp_alerts"]]
        test["promql_expr_test"] = [
            {
                "expr": f'count(ALERTS{{alertstate="firing", alertname!="{one["alertname"]}"}})',
                "eval_time": one["eval_time"],
                "exp_samples": [],
            }
            for one in fired
        ]
    path = tmp_path / "alone_test.yml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    assert "SUCCESS" in play("promtool", "test", "rules", str(path))


def test_a_pause_raises_no_alert_of_grafana_unless_a_worker_made_it(lines: Lines) -> None:
    add(lines, "copy", 100)
    change(lines, "migration", "paused_at = now() - interval '25 h'")
    assert ask(lines) == []
    change(lines, "migration", "pause_reason = 'The bucket is gone.', paused_by_worker = true")
    assert ask(lines) == ["critical"]


def test_grafana_alerts_of_what_could_go_on_and_does_not(lines: Lines) -> None:
    add(lines, "copy", 100)
    assert ask(lines) == ["critical"]
    add_worker(lines, "copy")
    assert ask(lines) == []
    change(lines, "batch_queue", "run_after = now() - interval '1 h'")
    change(lines, "worker", "started_at = now() - interval '1 h'")
    assert ask(lines) == ["critical"]
    change(lines, "batch_queue", "status = 'ERROR' where status = 'INIT'")
    assert ask(lines) == ["warning"]
