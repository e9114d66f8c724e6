"""What is asked of the commands once all has been moved: again, verify, revert, and their words for mistakes."""

import subprocess
from collections.abc import Callable, Iterator, Mapping

from conformance.environment import Environment
from conformance.listings import check_objects, check_resume

Command = Callable[[Environment], Iterator[str] | None]


def check_rerun(setup: Environment) -> None:
    """A second `migrate` copies nothing, moves nothing and finds what it found."""
    before = setup.migration.production.listing(), setup.migration.rows(), find_failures(setup)
    done = setup.run("migrate", "--yes", "--processes", "1")
    setup.hold(done.returncode in {0, 1}, f"`migrate` ended with {done.returncode}: {last_words(done)}")
    after = setup.migration.production.listing(), setup.migration.rows(), find_failures(setup)
    for what, old, new in zip(("the objects", "the rows", "the failures"), before, after, strict=True):
        setup.hold(old == new, f"the second run changed {what}: {differences(old, new)}")


def check_verify(setup: Environment) -> Iterator[str]:
    """Every row that was moved is found equal, but for properties that plain requests lose as well."""
    moved = sum(str(key).startswith("avatar/") for key in setup.migration.rows().values())
    done = setup.run("verify", "--yes", "--processes", "1")
    kept = sum(batch["kept"] for batch in setup.migration.batches() if batch["queue_name"] == "verify")
    loses = any(setup.production.dropped[setup.way(in_parts=in_parts)] for in_parts in (False, True))
    others = moved - kept
    setup.hold(done.returncode == (others > 0), f"`verify` ended with {done.returncode}: {last_words(done)}")
    setup.hold(0 <= others <= 2 * loses, f"{kept} of {moved} found equal")
    if others:
        yield "verify finds the properties that are lost"


def check_revert(setup: Environment) -> None:
    """Every row names its legacy object again, and no object has been touched."""
    objects = setup.migration.production.listing(), setup.migration.legacy.listing()
    done = setup.run("revert", "--yes", "--processes", "1")
    setup.hold(done.returncode == 0, f"`revert` ended with {done.returncode}: {last_words(done)}")
    left = [key for key in setup.migration.rows().values() if not str(key).startswith("image/")]
    setup.hold(not left, f"{len(left)} rows were not put back: {left[:3]}")
    setup.hold(objects == (setup.migration.production.listing(), setup.migration.legacy.listing()), "objects changed")


def check_errors(setup: Environment) -> Iterator[str]:
    """A wrong secret and a wrong bucket are each one sentence, and cost no entry."""
    side = "LEGACY" if setup.direction == "from" else "PRODUCTION"
    if setup.facts.checks_secret:
        hold_refusal(setup, {f"ROWFERRY_{side}_SECRET_ACCESS_KEY": "wrong"}, "a wrong secret")
    else:
        yield "checks no secret"
    plan = setup.migration.plan[side.lower()]
    bucket, plan["bucket"] = plan["bucket"], "no-such-bucket"
    setup.migration.write_plan()
    try:
        hold_refusal(setup, {}, "a wrong bucket", "no-such-bucket")
    finally:
        plan["bucket"] = bucket
        setup.migration.write_plan()


def hold_refusal(setup: Environment, environment: dict[str, str], what: str, *words: str) -> None:
    before = setup.migration.rows(), find_failures(setup)
    for command in (("check",), ("migrate", "--yes")):
        done = setup.run(*command, **environment)
        told = " ".join((done.stdout + done.stderr).split())
        setup.hold(done.returncode in {1, 2}, f"with {what} `{command[0]}` ended with {done.returncode}: {told[-400:]}")
        setup.hold("Traceback" not in told, f"with {what} `{command[0]}` printed a traceback")
        for word in words:
            setup.hold(word in told, f"with {what} `{command[0]}` does not name {word}: {told[-400:]}")
        if environment:
            setup.hold("give s3:" not in told, f"with {what} `{command[0]}` asks for rights: {told[-400:]}")
    setup.hold(before == (setup.migration.rows(), find_failures(setup)), f"{what} cost entries")


def find_failures(setup: Environment) -> list[tuple[str, str, str]]:
    """Return what came of the entries that were not settled, by their ids."""
    failures = setup.migration.failures()
    return sorted((each["entry_id"], each["outcome"], each["reason"]) for each in failures)


def last_words(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stdout + done.stderr)[-500:]


def differences(old: object, new: object) -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        return str({key: (old.get(key), new.get(key)) for key in {*old, *new} if old.get(key) != new.get(key)})[:500]
    return f"{old} → {new}"[:500]


COMMANDS: Mapping[str, Command] = {
    "rerun": check_rerun,
    "verify": check_verify,
    "revert": check_revert,
    "objects": check_objects,
    "resume": check_resume,
    "errors": check_errors,
}
