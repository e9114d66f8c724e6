"""What `make torture` says of its runs: ✓ only where all was done, all faults came, and nothing was violated."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

import torture.__main__ as runner
from torture import page
from torture import run as runs
from torture.page import HEAD, PAGE, fill_in, read_results, record
from torture.run import WITHOUT_VERSITYGW, Run
from torture.scenarios import SCENARIOS
from torture.scenarios.scenario import Scenario, Size

pytestmark = pytest.mark.soak

RunIt = Callable[..., Result]


def make_scenario(act: Callable[[Run], None], promised: Collection[str]) -> type[Scenario]:
    """Return a scenario that does nothing else."""

    class Made(Scenario):
        what = ""
        faults = frozenset(promised)
        short = long = Size(1, 1)

        def torture(self) -> None:
            act(self.run)

    return Made


@pytest.fixture
def run_it(monkeypatch: pytest.MonkeyPatch) -> RunIt:
    """Return a function that runs one scenario made of a function and the faults that it promises."""

    def run(torture: Callable[[Run], None], faults: Collection[str] = (), *, seed: int = 0) -> Result:
        monkeypatch.setitem(runner.SCENARIOS, "kills", make_scenario(torture, faults))
        return CliRunner().invoke(runner.main, [f"--seed={seed}", "--only=kills"])

    return run


def test_a_violation_is_the_exit_status(run_it: RunIt) -> None:
    def torture(run: Run) -> None:
        run.entries, run.violation_count = 1, run.seed

    calm, violated = run_it(torture, seed=0), run_it(torture, seed=1)
    assert (calm.exit_code, calm.output[0]) == (0, "✓")
    assert (violated.exit_code, violated.output[0]) == (1, "✗")


def test_a_scenario_that_fails_is_a_violation_and_the_others_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def torture(_: Run) -> None:
        raise RuntimeError("no such thing")

    for name in SCENARIOS:
        monkeypatch.setitem(runner.SCENARIOS, name, make_scenario(torture, ()))
    ended = CliRunner().invoke(runner.main, ["--seed=0"])
    assert ended.exit_code == 1
    assert ended.output.count("VIOLATION: the scenario did not come to its end") == len(SCENARIOS)


def test_a_run_whose_faults_never_came_proves_nothing(run_it: RunIt) -> None:
    def torture(run: Run) -> None:
        run.entries = 1
        run.faults.update({"resets": 2, "silences": 0})

    ended = run_it(torture, {"resets", "silences", "PANIC"})
    assert ended.exit_code == 1
    assert ended.output.startswith("✗ kills")
    assert "PROVED NOTHING: PANIC: never" in ended.output
    assert "PROVED NOTHING: silences: never" in ended.output
    assert "resets: never" not in ended.output
    assert "0 silences" not in ended.output


def test_what_was_skipped_is_not_ticked(run_it: RunIt) -> None:
    ended = run_it(lambda run: run.skipped.append("only root mounts"), {"resets"})
    assert ended.exit_code == 0
    assert ended.output == "– kills: \n  skipped: only root mounts\n"


def test_a_run_against_moto_is_not_ticked_either(run_it: RunIt, monkeypatch: pytest.MonkeyPatch) -> None:
    auditor = SimpleNamespace(end=lambda: None, audits=1, count=0, violations=[])

    @contextmanager
    def make_world(_: int, **_options: Any) -> Iterator[Any]:
        yield SimpleNamespace(entries=1, auditor=auditor)

    def torture(run: Run) -> None:
        with run.world(), run.world():
            pass

    monkeypatch.setattr(runs, "make_world", make_world)
    monkeypatch.setattr(runs, "find_versitygw", lambda: Path("versitygw"))
    assert run_it(torture).output.startswith("✓ kills")
    monkeypatch.setattr(runs, "find_versitygw", lambda: None)
    ended = run_it(torture)
    assert ended.output.startswith("– kills")
    assert ended.output.count(f"not the whole: {WITHOUT_VERSITYGW}") == 1


def test_the_page_shows_what_was_skipped_and_what_never_came(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    (tmp_path / "page.md").write_text(f"{page.BEGIN}\n{page.END}\n")
    skipped = Run("disk", 1, skipped=["only root mounts"])
    poor = Run("kills", 1, promised={"SIGKILL"}, entries=5)
    record([skipped.as_document("The disk is full"), poor.as_document("SIGKILL")])
    shown = (tmp_path / "page.md").read_text()
    assert "| disk | The disk is full | **skipped: only root mounts** | – | – | – | – | 1 |" in shown
    assert "| kills | SIGKILL | **never came: SIGKILL** | 5 | 0 | 0 | 0 | 1 |" in shown

    done = Run("disk", 2, entries=7)
    done.faults["full disks"] = 2
    record([done.as_document("The disk is full")])
    record([skipped.as_document("The disk is full")])
    shown = (tmp_path / "page.md").read_text()
    assert "| disk | The disk is full | 2 full disks | 7 | 0 | 0 | 0 | 2 |" in shown
    assert "skipped" not in shown


def test_the_table_in_the_docs_is_that_of_the_results() -> None:
    shown = PAGE.read_text(encoding="utf-8")
    assert HEAD in shown
    assert fill_in(shown, read_results()) == shown
    assert [result["scenario"] for result in read_results()] == list(SCENARIOS)
    for result in read_results():
        scenario = SCENARIOS[result["scenario"]]
        assert result["what"] == scenario.what
        assert (result["violations"], result["missing"], result["skipped"]) == (0, [], [])
        assert all(result["faults"][kind] for kind in scenario.faults)
