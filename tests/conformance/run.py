"""Runs every check on one server in one direction, and says what came of each."""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO

from conformance.checks import CHECKS, Check
from conformance.commands import COMMANDS, Command
from conformance.environment import Environment, Wrong


@dataclass(frozen=True, slots=True)
class Finding:
    """`wrong`: what no limit excuses, or None; `limits`: the server's own."""

    check: str
    limits: tuple[str, ...] = ()
    wrong: str | None = None


def run_checks(
    setup: Environment, checks: Sequence[Check] = CHECKS, commands: Mapping[str, Command] = COMMANDS
) -> Iterator[Finding]:
    """Plant, migrate with a real worker process, look, then let the commands loose on what there is."""
    with redirect_stdout(StringIO()), setup.migration.workers(1, **setup.migration.environment) as (worker,):
        for early in (True, False):
            for check in checks:
                if check.early == early:
                    check.plant(setup)
            legacy = setup.migration.legacy.listing()
            setup.work()
        setup.hold(worker.process.poll() is None, "the worker has died")
    for check in checks:
        yield look(check.name, lambda check=check: check.look(setup))
    yield look("one attempt", lambda: hold_one_attempt(setup))
    yield look("legacy untouched", lambda: hold_untouched(setup, legacy))
    for name, command in commands.items():
        yield look(name, lambda command=command: command(setup))


def look(name: str, check: Callable[[], Iterator[str] | None]) -> Finding:
    """Return what came of one check."""
    limits: list[str] = []
    try:
        limits.extend(check() or ())
    except Wrong as wrong:
        return Finding(name, tuple(limits), str(wrong))
    except Exception as error:  # noqa: BLE001 - the other checks are still to be run
        traceback.print_exc()
        return Finding(name, tuple(limits), f"{type(error).__name__}: {error}")
    return Finding(name, tuple(dict.fromkeys(limits)))


def hold_one_attempt(setup: Environment) -> None:
    """Nothing was tried twice: the servers are healthy, and each retry is a full copy."""
    verdicts = setup.migration.execute(
        "select verdict, error from rowferry.batch_attempt where verdict not in ('DONE', 'ERROR')"
    )
    setup.hold(not verdicts, f"{len(verdicts)} attempts did not settle their batch: {verdicts[:2]}")


def hold_untouched(setup: Environment, legacy: object) -> None:
    setup.hold(setup.migration.legacy.listing() == legacy, "the legacy bucket has changed")
