"""Whatever an application does while its objects are copied, in any order: the newest arrive, or the entry is named."""

import pytest

from support.queue import cutover_explorer, hand_on_explorer, rewrite_explorer
from support.queue.exploring import Violation

REWRITES = {
    "one instance": rewrite_explorer.Scenario(),
    "one instance that writes often": rewrite_explorer.Scenario(rewrites=4),
    "two instances, of which one may be late": rewrite_explorer.Scenario(instances=2),
}
WEAKER_REWRITES = {
    "never looks again": (rewrite_explorer.Scenario(look="none"), "a row moves whose object was rewritten"),
    "looks before the copy has ended": (rewrite_explorer.Scenario(look="before"), "a row moves whose object was"),
    "dates, production ahead": (rewrite_explorer.Scenario(order="dates", skew=2), "an old object is called the newest"),
    "dates, production behind": (rewrite_explorer.Scenario(order="dates", skew=-2), "an old object is not named"),
}
SWITCHES = {
    "written often": cutover_explorer.Scenario(rewrites=4),
    "deleted": cutover_explorer.Scenario(rewrites=2, deletions=1),
    "deaths": cutover_explorer.Scenario(deaths=1),
    "deaths in slow copies": cutover_explorer.Scenario(deaths=1, rewrites=2, is_slow=True),
    "switched back, and again": cutover_explorer.Scenario(returns=1),
}
OLD = "complete, and an old object is not named"
WEAKER_SWITCHES = {
    "never looks again": (cutover_explorer.Scenario(looks_again=False), "now is the moment, over an object"),
    "dates": (cutover_explorer.Scenario(order="dates"), OLD),
    "dates, production ahead": (cutover_explorer.Scenario(order="dates", skew=2), OLD),
    "dates, production behind": (cutover_explorer.Scenario(order="dates", skew=-2), OLD),
    "all is ours until the switch is confirmed": (cutover_explorer.Scenario(ours_until="confirmed"), OLD),
    "does not note what it is about to write": (
        cutover_explorer.Scenario(deaths=1, rewrites=2, is_slow=True, notes_before=False),
        OLD,
    ),
    "forgets a return": (cutover_explorer.Scenario(returns=1, forgets_return=True), "a lasting conflict after"),
}
WEAKER_CHAINS = {
    "handed on before the verdict": (hand_on_explorer.Scenario(moment="before"), "an entry is handed on twice"),
    "handed on after the verdict": (hand_on_explorer.Scenario(moment="after"), "a settled entry is not handed on"),
    "reads what is settled": (hand_on_explorer.Scenario(tracks=False), "an entry is handed on twice"),
}


@pytest.mark.parametrize("name", REWRITES)
def test_a_rewritten_object_arrives_or_is_named(name: str) -> None:
    assert rewrite_explorer.explore(REWRITES[name]) > 1000


@pytest.mark.parametrize("name", WEAKER_REWRITES)
def test_a_weaker_look_or_order_leaves_an_old_object(name: str) -> None:
    scenario, promise = WEAKER_REWRITES[name]
    with pytest.raises(Violation, match=promise):
        rewrite_explorer.explore(scenario)


@pytest.mark.parametrize("name", SWITCHES)
def test_no_order_of_a_switch_loses_the_newest_version(name: str) -> None:
    assert cutover_explorer.explore(SWITCHES[name]) > 1000


@pytest.mark.parametrize("name", WEAKER_SWITCHES)
def test_a_weaker_rule_of_the_switch_loses_a_version(name: str) -> None:
    scenario, promise = WEAKER_SWITCHES[name]
    with pytest.raises(Violation, match=promise):
        cutover_explorer.explore(scenario)


def test_every_settled_entry_is_handed_on_once() -> None:
    assert hand_on_explorer.explore(hand_on_explorer.Scenario(entries=3)) > 1000


@pytest.mark.parametrize("name", WEAKER_CHAINS)
def test_a_weaker_hand_over_loses_or_doubles_an_entry(name: str) -> None:
    scenario, promise = WEAKER_CHAINS[name]
    with pytest.raises(Violation, match=promise):
        hand_on_explorer.explore(scenario)
