"""What a key means: decisions only."""

from dataclasses import dataclass
from typing import Literal

from rowferry.watch.picture import Picture

Action = Literal["pause", "resume", "requeue"]


@dataclass(frozen=True, slots=True)
class Dialog:
    """Where the conversation stands: what is asked, what was decided, and whether it is over."""

    question: str = ""
    """Open until it is answered with y or n."""
    reply: str = ""
    """Why a key did nothing."""
    action: Action | None = None
    """To be done now."""
    over: bool = False


def press(dialog: Dialog, key: str, picture: Picture | None) -> Dialog:
    """Return where the conversation stands after a key; what is pressed before the first picture only quits."""
    if dialog.question:
        return _answer(dialog, key)
    if key.lower() == "q":
        return Dialog(over=True)
    return _ask_for(key, picture) if picture is not None else Dialog()


def _ask_for(key: str, picture: Picture) -> Dialog:
    match key.lower():
        case "p":
            return Dialog(action="pause")
        case "r":
            return Dialog(action="resume")
        case "e" if picture.total.batches_error:
            return Dialog(f"Put all batches in ERROR ({picture.total.batches_error:,}) back in the queue? (y/n)")
        case "e":
            return Dialog(reply="No batch is in ERROR.")
        case _:
            return Dialog()


def _answer(dialog: Dialog, key: str) -> Dialog:
    """Take y for yes, n and q for no; ask on at anything else."""
    match key.lower():
        case "y":
            return Dialog(action="requeue")
        case "n" | "q":
            return Dialog()
        case _:
            return dialog
