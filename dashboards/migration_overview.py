"""The first screen of the dashboard *Migration*: all migrations, six numbers and the queues of the chosen one."""

from grafana_foundation_sdk.builders import stat, table
from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.models.common import BigValueTextMode

from colours import QUEUE_STATES, STATES
from frame import CLUSTER, board_url, explained_by, link, runbook
from kit import MOVES, Look, matching, no_value, override, same_as, show_stat, sql, words
from tables import BAD, WARN, Column, show_table

THIS = board_url("migration", "postgresql", *CLUSTER)
DURATION = "dtdhms"


def add_overview(board: Dashboard) -> Dashboard:
    """Add the tables and the six numbers; three queries answer all of these."""
    board = board.with_panel(_migrations())
    for panel in (_state(), _done(), _left(), _time_left(), _speed(), _need()):
        board = board.with_panel(panel.span(4).height(5))
    return board.with_panel(_queues())


def _migrations() -> table.Panel:
    look = Look(
        "All migrations",
        "The worst first; ▶ is the one shown below. A click on a name shows that migration. Left behind: objects of "
        "the legacy bucket that the plan does not name. Passes: enqueues so far, those of a cutover too.",
        24,
        6,
        none="no migration yet",
    )
    return show_table(
        look,
        sql("migrations_table"),
        Column("▶", width=50, mappings=(no_value(" "),)),
        Column("migration", whole=True, width=220, url=f"{THIS}&var-migration=${{__value.raw}}"),
        Column("state", words=STATES, cell="color-background", width=142),
        Column("since", "dateTimeFromNow", 134),
        Column("done", "percent", 115, cell="gauge", most=100, decimals=1, steps=((None, "blue"),)),
        Column("entries left", width=90),
        Column("entries/s", decimals=0, width=75),
        Column("ends at", "time:ddd HH:mm", width=85),
        Column("need an operator", steps=BAD, cell="color-background", width=127),
        Column("left behind", steps=WARN, cell="color-background", width=88),
        Column("passes", width=62),
        Column("type this", width=125, whole=True),
        Column("what holds it", whole=True),
    )


def _queues() -> table.Panel:
    look = Look(
        "Queues of the migration",
        "In the order in which they hand on. Left: what is still to come included. Last hour: its mean rate. Time left "
        "includes the queues before. Holds the end: it takes longest, so the others can only wait for it.",
        24,
        5,
        none="no queue yet",
    )
    return show_table(
        look,
        sql("queues_table"),
        Column("queue", whole=True),
        Column("state", words=QUEUE_STATES, cell="color-background", width=150),
        Column("done", "percent", 230, cell="gauge", most=100, decimals=1, steps=((None, "blue"),)),
        Column("left", width=110),
        Column("entries/s", decimals=0, width=95),
        Column("last hour", "locale", 95, 0),
        Column("time left", DURATION, 110),
        Column("failed", steps=BAD, cell="color-background", width=100),
        Column("of finished", "percent", 100, 2),
        Column("claimed", width=80),
        Column("at most", width=80),
        Column("oldest due", "s", 110, 1),
    )


def _state() -> stat.Panel:
    look = Look(
        "State",
        "Done; needs an operator (no batch waits, and some are in ERROR); paused; no workers (none that serves its "
        "queues); waiting (no batch is due, or all are put back); stalled (batches are due, and nothing moves); or "
        "running; and for how long. Of the whole migration: the queues have theirs below.",
        unit="none",
        none="no migration yet",
        links=(link("Runbook: what to do", runbook()),),
    )
    panel = show_stat(look, sql("now"), fields="/^(state|since)$/", background=True)
    ages = [matching(f"/^{state} (.+)$/", colour, "$1") for state, (_, colour) in STATES.items()]
    return panel.text_mode(BigValueTextMode.VALUE).mappings([words(STATES), *ages])


def _done() -> stat.Panel:
    look = Look(
        "Done",
        "Share of the settled entries, which need nothing more; of several queues, of the one behind. 100 % only "
        "when no entry is left and none needs an operator.",
        unit="percent",
        decimals=1,
        none="no entries yet",
        steps=((None, "blue"),),
        links=(explained_by("Progress by table"),),
    )
    return show_stat(look, same_as("State"), fields="/^done$/", calc="min")


def _left() -> stat.Panel:
    look = Look(
        "Entries left",
        "Entries that have not left all queues of the migration: the number that All migrations says.",
        none="no entries",
        steps=((None, "blue"),),
        links=(explained_by("Entries left over time"),),
    )
    return show_stat(look, same_as("State"), fields="/^left$/", calc="max")


def _time_left() -> stat.Panel:
    look = Look(
        "Time left",
        "Until the last queue has finished, at the rate of the last ten minutes. Only while it is running and all its "
        "queues move.",
        unit=DURATION,
        decimals=0,
        none="no estimate",
        links=(explained_by("Queues of the migration"),),
    )
    panel = show_stat(look, same_as("State"), fields="/^(time left|ends at)$/", calc="max")
    ends = [override("unit", "time:[ends] ddd HH:mm"), override("noValue", " ")]
    return panel.text_mode(BigValueTextMode.VALUE).override_by_name("ends at", ends)


def _speed() -> stat.Panel:
    look = Look(
        "Entries/s",
        "Finished entries of the slowest queue that has work, mean of the last minute; 0 once none is left.",
        decimals=0,
        none="no batch yet",
        steps=MOVES,
        links=(explained_by("What bounds it: a batch's time by step"),),
    )
    return show_stat(look, same_as("State"), fields="/^speed$/", calc="max")


def _need() -> stat.Panel:
    look = Look(
        "Need an operator",
        "Entries of all queues that are missing, conflict or failed, or set to ERROR by hand: see Errors by reason.",
        none="no entries yet",
        steps=((None, "green"), (1, "red")),
        links=(explained_by("Errors by reason"),),
    )
    return show_stat(look, same_as("State"), fields="/^need an operator$/", calc="max", background=True)
