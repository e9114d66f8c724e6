"""What the rounds of responses do to the number of objects in flight."""

from rowferry_worker.pacing.climb import Climb, Round
from rowferry_worker.pacing.latency import Mean

IN_FLIGHT = 32.0


def end_rounds(climb: Climb, began_at: float, *seconds: float) -> list[str]:
    """End rounds with these latencies, each within the pause between two experiments; return the phases."""
    phases: list[str] = []
    for number, latency in enumerate(seconds):
        climb.end_round(Round(IN_FLIGHT, {("PutObject", 10): Mean(latency, 0.01, 9.0)}), began_at + number / 10)
        phases.append(climb.phase)
    return phases


def test_a_change_of_latency_calls_for_an_experiment_once_it_lasts_for_two_rounds() -> None:
    climb = Climb(target=IN_FLIGHT, least=1.0, most=1024.0)
    climb.begin_at(IN_FLIGHT, 0.0, doubling=False)
    assert end_rounds(climb, 0.1, 0.1, 0.1, 0.3, 0.1, 0.3) == ["resting"] * 5
    assert end_rounds(climb, 0.6, 0.3) == ["probing"]
    assert climb.target == IN_FLIGHT / 2, "latency has risen, so fewer are tried"
