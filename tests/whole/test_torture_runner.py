"""What `make torture` says of its runs: ✓ only where all was done, all faults came, and nothing was violated."""

from collections.abc import Callable, Collection

import pytest
from click.testing import CliRunner, Result

import torture.__main__ as runner
from torture.page import HEAD, PAGE, fill_in, read_results
from torture.run import Run
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
