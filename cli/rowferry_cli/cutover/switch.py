"""What a cutover has to know: when the application was switched and whether it went back."""

from typing import Any

from rowferry.db.connection import Connection, call, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import UsageError
from rowferry.plan import Plan
from rowferry_cli.reporter import Reporter
from rowferry_queues.migrate.spec import MIGRATE


def read_state(connection: Connection, plan: Plan) -> dict[str, Any] | None:
    """Return what is recorded of a migration's switch; None: there is no such migration."""
    with translated_errors():
        return connection.execute(statement("read_switch"), {"name": plan.name, "queue": MIGRATE.name}).fetchone()


def note_switched_back(connection: Connection, plan: Plan, reporter: Reporter) -> int:
    """Record that the application uses the legacy bucket again, and return the exit status."""
    state = read_state(connection, plan)
    if state is None or (state["switched_at"] is None and state["moment_at"] is None):
        raise UsageError(
            f"Migration {plan.name} has not come to the moment of a switch, so there is nothing to take back: run "
            "`rowferry cutover` without --switched-back."
        )
    with translated_errors():
        call(connection, "note_switch", state["id"], None, True)
    reporter.print("Noted: the application uses the legacy bucket again. `rowferry cutover` begins anew.")
    return 0


def confirm_abandoned(connection: Connection, plan: Plan, reporter: Reporter) -> None:
    """Say what becomes of the objects that the application wrote before it went back, and ask whether that is meant."""
    state = read_state(connection, plan)
    if state is not None and state["switched_back_at"] is not None and state["switched_at"] is None:
        first, last = (f"{state[name]:%F %T %Z}" for name in ("was_switched_at", "switched_back_at"))
        reporter.print(
            f"What the application wrote to {plan.production.bucket} while it was switched, from {first} to {last}, is "
            "replaced by the legacy objects, which it reads now."
        )
        reporter.confirm("Is that right?")
