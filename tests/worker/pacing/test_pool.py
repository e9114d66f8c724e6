"""Behind PgBouncer a process takes connections one by one, and steps back as soon as it has waited for one."""

from rowferry_worker.slots import GROWS_EVERY, KEEPS_FOR, PoolBound

STEP, KEPT = GROWS_EVERY.total_seconds(), KEEPS_FOR.total_seconds()


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_process_starts_with_one_slot_and_tries_one_more_after_each_step() -> None:
    clock = Clock()
    bound = PoolBound(clock)
    assert bound.slots == 1
    clock.now += STEP * 0.9
    assert bound.slots == 1
    clock.now += STEP * 2.2
    assert bound.slots == 4


def test_a_wait_costs_a_slot_but_the_last_and_no_more_are_tried_for_long() -> None:
    clock = Clock()
    bound = PoolBound(clock)
    clock.now += STEP * 8
    bound.note_wait(running=4)
    assert bound.slots == 3, "one less than ran, however many it might have had"
    clock.now += KEPT - 1
    assert bound.slots == 3
    clock.now += 1 + STEP
    assert bound.slots == 4
    for _ in range(3):
        bound.note_wait(running=1)
    assert bound.slots == 1
