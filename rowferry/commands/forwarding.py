"""Gives the options of a command on to other processes of the same command, whatever options it has."""

from collections.abc import Collection, Iterator

import click


def forward_options(context: click.Context, *, but: Collection[str]) -> list[str]:
    """Return the arguments that give another process the options of this one, but for those named in `but`.

    Options are named as in `context.params`. Those without a value, and flags that are not set, are left out.
    """
    return [
        argument
        for option in context.command.params
        if isinstance(option, click.Option) and option.name not in but
        for argument in _write(option, context.params[option.name])
    ]


def _write(option: click.Option, value: object) -> Iterator[str]:
    name = option.opts[-1]
    if option.is_flag:
        yield from [name] if value else []
    elif option.multiple and isinstance(value, tuple):
        yield from (f"{name}={one}" for one in value)  # pyright: ignore[reportUnknownVariableType]
    elif value is not None:
        yield f"{name}={value}"
