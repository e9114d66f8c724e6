"""The alerts are silent in healthy migrations, and each tells its own fault: in promtool, and in SQL on a queue."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from alert_rules import ALERTS
from support.docs.doc_pages import ROOT
from support.queue.lines import Lines
from support.queue.rows import add, add_worker, change
from support.screens.grafana import FOLDER
from write_alerts import PROMETHEUS, read_query

RUNBOOK = ROOT / "docs" / "runbook.md"
IN_GRAFANA = {alert.query: alert for alert in ALERTS if alert.query}
PROMTOOL = shutil.which("promtool")


@pytest.fixture
def lines(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lines]:
    monkeypatch.setenv("DATABASE_URL", database)
    with closing(Lines(database)) as lines:
        lines.register("m")
        yield lines


def ask(lines: Lines) -> dict[str, float]:
    """Return the alerts of Grafana whose condition holds, with their value; of several, the last."""
    found: dict[str, float] = {}
    for query in IN_GRAFANA:
        for row in lines.session.execute(read_query(query).encode()):
            numbers = [value for value in row.values() if not isinstance(value, str)]
            assert numbers == [row["value"]], "one number a row, and its labels are texts"
            found[query] = row["value"]
    return found


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


def test_a_pause_raises_no_alert_unless_a_worker_made_it_or_it_lasts_a_day(lines: Lines) -> None:
    add(lines, "copy", 100)
    change(lines, "batch_queue", "run_after = now() - interval '9 h'")
    for hours, expected in ((3, {}), (23, {}), (25, {"paused_long": pytest.approx(25 * 3600, rel=0.01)})):
        change(lines, "migration", f"paused_at = now() - interval '{hours} h'")
        assert ask(lines) == expected
    change(lines, "migration", "pause_reason = 'The bucket is gone.', paused_by_worker = true")
    for hours in (25, 3):
        change(lines, "migration", f"paused_at = now() - interval '{hours} h'")
        assert ask(lines) == {"paused_by_worker": 1}


def test_a_lost_worker_alerts_until_it_is_replaced(lines: Lines) -> None:
    add(lines, "copy", 100)
    add(lines, "copy", 100, "DONE")
    add_worker(lines, "copy", name="host-a", silent="10 min")
    add_worker(lines, "copy", name="host-b")
    change(lines, "worker", "started_at = now() - interval '2 h'")
    assert ask(lines) == {"worker_lost": 1}
    add_worker(lines, "copy", name="host-c")
    assert ask(lines) == {}


def test_workers_that_began_before_a_loss_replace_nothing(lines: Lines) -> None:
    add(lines, "copy", 100)
    add(lines, "copy", 100, "DONE")
    for name in "abcdefghi":
        add_worker(lines, "copy", name=name)
    change(lines, "worker", "started_at = now() - interval '30 min'")
    change(lines, "worker", "last_seen_at = now() - interval '10 min' where id = 'a'")
    assert ask(lines) == {"worker_lost": 1}
    add_worker(lines, "copy", name="j")
    assert ask(lines) == {}
    # The replacement is lost and replaced in turn: as many live as before.
    change(lines, "worker", "started_at = now() - interval '9 min' where id = 'j'")
    change(lines, "worker", "last_seen_at = now() - interval '5 min' where id = 'j'")
    assert ask(lines) == {"worker_lost": 1}
    add_worker(lines, "copy", name="k")
    assert ask(lines) == {}
    # Two at a time need two.
    change(lines, "worker", "last_seen_at = now() - interval '3 min' where id = 'b'")
    assert ask(lines) == {"worker_lost": 1}


def test_a_queue_alerts_when_workers_claim_from_others_of_its_priority_only(lines: Lines) -> None:
    lines.session.execute("select rowferry.register_migration('m', '{}', '{\"copy\": {}, \"tag\": {}}')")
    for queue in ("copy", "tag"):
        add(lines, queue, 100)
        add(lines, queue, 100, "DONE")
    change(lines, "batch_queue", "finished_at = now() - interval '2 min' where finished_at is not null")
    change(lines, "batch_queue", "run_after = now() - interval '1 h'")
    add(lines, "copy", 100, "DONE")
    add_worker(lines, "copy", "tag")
    lines.session.execute(
        "insert into rowferry.batch_attempt (batch_id, requeues, number, worker_id) select id, 0, 1, 'host-a' "
        "from rowferry.batch_queue where queue_name = 'copy' and status = 'INIT'"
    )
    assert ask(lines) == {"queue_starved": pytest.approx(3600, rel=0.1)}
    lines.steer(("m", "tag"), "priority = -1")
    assert ask(lines) == {}


def test_a_transaction_that_stays_open_alerts_while_a_migration_runs(lines: Lines) -> None:
    add(lines, "copy", 100)
    add(lines, "copy", 100, "DONE")
    add_worker(lines, "copy")
    lines.session.execute(
        "create or replace function rowferry.measure_transactions() returns table (of text, seconds double precision) "
        "language sql as $$ values ('rowferry', 5), ('others', 4000) $$"
    )
    assert ask(lines) == {"old_transaction": 4000}
    change(lines, "worker", "stopped_at = now()")
    assert "old_transaction" not in ask(lines)
