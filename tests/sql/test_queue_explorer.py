"""Whatever befalls two or three workers, in any order: nothing is lost, stuck, or held against the living."""

import os

import pytest

from support.queue.exploring import Violation
from support.queue.queue_explorer import Rule, Scenario, explore

LARGE = os.environ.get("ROWFERRY_LARGE_MODEL", "") == "1"
"""Set by `make model`: minutes instead of seconds."""

SCENARIOS = {
    "one session ended": Scenario(mishaps={"end_session": 1}),
    "two sessions ended, three workers": Scenario(workers=3, mishaps={"end_session": 2}),
    "a restart": Scenario(mishaps={"restart": 1}),
    "two restarts, two batches": Scenario(lots=(2, 1), mishaps={"restart": 2}),
    "a death, a lost answer, a hanging commit": Scenario(lots=(2,), mishaps={"die": 1, "lose_answer": 1, "hang": 1}),
    "requeued, legacy again, a hanging commit": Scenario(
        lots=(2,), mishaps={"requeue": 1, "hang": 1, "end_session": 1}
    ),
    "an entry that kills its worker": Scenario(lots=(3,), workers=1, poison="kills"),
    "an entry that ends its backend": Scenario(lots=(2,), workers=1, poison="ends_backend", most_deaths=12),
    "an entry that kills its worker, and an ended session": Scenario(
        lots=(2,), poison="kills", mishaps={"end_session": 1}
    ),
}
LARGE_SCENARIOS = {
    "poison among four, two workers": Scenario(lots=(4,), poison="kills"),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_state_breaks_a_promise(name: str) -> None:
    assert explore(SCENARIOS[name]) > 10


@pytest.mark.skipif(not LARGE, reason="`make model` takes minutes over it")
@pytest.mark.parametrize("name", LARGE_SCENARIOS)
@pytest.mark.timeout(3600)
def test_no_state_of_a_large_scenario_breaks_a_promise(name: str) -> None:
    assert explore(LARGE_SCENARIOS[name], most_states=5_000_000) > 10_000


@pytest.mark.parametrize("rule", ["open", "unlocked"])
def test_a_rule_that_looks_at_less_counts_the_living(rule: Rule) -> None:
    """Every open attempt is not a death; nor is every worker dead whose lock a restart has taken."""
    mishap = {"open": "end_session", "unlocked": "restart"}[rule]
    with pytest.raises(Violation, match="a living worker is counted as crashed"):
        explore(Scenario(rule=rule, mishaps={mishap: 1}))
