import queue
import threading

from rowferry.db.watchdog import DeadlineWatch

WAIT_SECONDS = 100


class Seen:
    """Remembers when it was asked."""

    def __init__(self) -> None:
        self.moments: queue.SimpleQueue[float] = queue.SimpleQueue()

    def cancel_overdue(self, now: float) -> None:
        self.moments.put(now)


def drain(seen: Seen) -> None:
    while not seen.moments.empty():
        seen.moments.get()


def test_what_is_watched_is_asked_again_and_again() -> None:
    watch, seen = DeadlineWatch(), Seen()
    watch.add(seen)
    first, second = seen.moments.get(timeout=WAIT_SECONDS), seen.moments.get(timeout=WAIT_SECONDS)
    assert second > first


def test_what_is_removed_is_left_alone() -> None:
    watch, gone, kept = DeadlineWatch(), Seen(), Seen()
    watch.add(gone)
    watch.add(kept)
    watch.remove(gone)
    watch.remove(gone)
    drain(kept)
    for _ in range(2):  # of a look that may have begun before, and of one that has begun since
        kept.moments.get(timeout=WAIT_SECONDS)
    drain(gone)
    kept.moments.get(timeout=WAIT_SECONDS)
    assert gone.moments.empty()


def test_tasks_run_on_the_watchs_own_thread_even_with_nothing_to_watch() -> None:
    threads: queue.SimpleQueue[threading.Thread] = queue.SimpleQueue()
    DeadlineWatch().run_soon(lambda: threads.put(threading.current_thread()))
    assert threads.get(timeout=WAIT_SECONDS) is not threading.current_thread()


def test_a_flood_of_tasks_does_not_stop_the_watching() -> None:
    watch, seen, stop = DeadlineWatch(), Seen(), threading.Event()

    def flood() -> None:
        if not stop.is_set():
            watch.run_soon(flood)

    flood()
    watch.add(seen)
    try:
        for _ in range(3):
            seen.moments.get(timeout=WAIT_SECONDS)
    finally:
        stop.set()
