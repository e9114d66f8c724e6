"""Names of queues on the command line."""

import click


def complete_queue(_context: click.Context, _option: click.Parameter, begun: str) -> list[str]:
    """Return the names of the queues that are installed here and begin so, for the shell."""
    from rowferry.queues import list_queues

    return [name for name in list_queues() if name.startswith(begun)]
