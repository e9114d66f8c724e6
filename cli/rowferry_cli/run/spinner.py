"""A spinner on stderr during long scans, for a person at a terminal and nobody else."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def show_spinner() -> Generator[Callable[[str], None]]:
    """Yield a function that puts words beside the spinner; it does nothing where stderr is no terminal."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda _words: None
        return
    with console.status("looking ...") as status:
        yield lambda words: status.update(f"{words} ...")
