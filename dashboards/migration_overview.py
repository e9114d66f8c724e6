"""The first screen of the dashboard *Migration*: all migrations, and six numbers about the chosen one."""

from grafana_foundation_sdk.builders import stat, table
from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.models.common import BigValueTextMode

from colours import STATES
from frame import board_url, explained_by, link, runbook
from kit import MOVES, Look, override, same_as, show_stat, sql, words
from tables import BAD, WARN, Column, show_table

THIS = board_url("migration", "postgresql", "prometheus")
DURATION = "dtdhms"


def add_overview(board: Dashboard) -> Dashboard:
    """Add the table and the six numbers; two queries answer all of these."""
    board = board.with_panel(_migrations())
    for panel in (_state(), _done(), _left(), _time_left(), _speed(), _need()):
        board = board.with_panel(panel.span(4).height(5))
    return board


def _migrations() -> table.Panel:
    look = Look(
        "All migrations",
        "The worst first; ▶ is the one shown below. A click on a name shows that migration. Left behind: objects of "
        "the legacy bucket that the plan does not name. What to do: what holds it, and what to type.",
        24,
        6,
        none="no migration yet",
    )
    return show_table(
        look,
        sql("migrations_table"),
        Column("shown", width=60),
        Column("migration", whole=True, width=200, url=f"{THIS}&var-migration=${{__value.raw}}"),
        Column("state", words=STATES, cell="color-background", width=150),
        Column("done", "percent", 150, cell="gauge", most=100, decimals=1, steps=((None, "blue"),)),
        Column("entries left", width=110),
        Column("time left", DURATION, 110),
        Column("ends at", "time:ddd HH:mm", width=110),
        Column("entries/s", decimals=0, width=85),
        Column("need an operator", steps=BAD, cell="color-background", width=150),
        Column("left behind", steps=WARN, cell="color-background", width=100),
        Column("what to do", whole=True),
    )


def _state() -> stat.Panel:
    look = Look(
        "State",
        "Done; needs an operator (no batch waits, and some are in ERROR); paused; no workers (none that serves its "
        "queues); waiting for retries (no batch is due); or running. Of the whole migration.",
        unit="none",
        none="no migration yet",
        links=(link("Runbook: what to do", runbook()),),
    )
    return show_stat(look, sql("now"), fields="/^state$/", background=True).mappings([words(STATES)])


def _done() -> stat.Panel:
    look = Look(
        "Done",
        "Share of the settled entries, which need nothing more; of several queues, that of the least done. 100 % only "
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
        links=(explained_by("Chain"),),
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
