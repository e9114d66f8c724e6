"""What every command has: a short --help, a full --help-advanced, and an environment variable for each option."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

FROM_KUBERNETES = ("tcp://", "udp://", "sctp://")
"""How values begin that Kubernetes puts into variables such as ROWFERRY_EXPORTER_PORT, for a service of that name."""


VARIABLES = "The variable in brackets sets an option from the environment; the command line has precedence."


@dataclass(frozen=True, slots=True)
class Group:
    """Options that only --help-advanced shows, under a heading."""

    title: str
    sentence: str
    """What they are for, and when to set them."""
    options: tuple[str, ...]
    """As the user writes them: `--parallel`."""


def name_variable(command: str, option: str) -> str:
    """Return the variable that sets an option, unless the option names another: ROWFERRY_WORKER_TIME_BUDGET."""
    return f"ROWFERRY_{command}_{option.removeprefix('--')}".replace("-", "_").upper()


class Command(click.Command):
    """A click command whose --help shows the common options only."""

    def __init__(self, name: str, *, groups: Sequence[Group] = (), **attributes: Any) -> None:
        """`groups`: all options but the common ones."""
        super().__init__(name, **attributes)
        self.groups = tuple(groups)
        for option in self.options:
            option.envvar = option.envvar or name_variable(name, option.opts[-1])
            if isinstance(option.type, click.IntRange):
                option.metavar = option.metavar or "N"
        self._full_help = self._make_full_help()

    @property
    def options(self) -> list[click.Option]:
        """Return all options but those of the help and hidden ones."""
        return [option for option in self.params if isinstance(option, click.Option) and not option.hidden]

    @property
    def common_options(self) -> list[click.Option]:
        """Return the options that --help shows."""
        return [option for option in self.options if not self.is_advanced(option)]

    def is_advanced(self, option: click.Parameter) -> bool:
        """Return whether only --help-advanced shows an option."""
        return any(option.opts[-1] in group.options for group in self.groups)

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Return the names of the help, which are the same wherever the command is called."""
        del ctx
        return ["-h", "--help"]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return all options, those of the help last."""
        return [*super().get_params(ctx), self._full_help]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, without the variables that Kubernetes sets."""
        for variable in {str(option.envvar) for option in self.options if isinstance(option.type, click.IntRange)}:
            if os.environ.get(variable, "").startswith(FROM_KUBERNETES):
                del os.environ[variable]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the common options; after --help-advanced all, by group and with their variables."""
        helps = [option for option in self.get_params(ctx) if option not in self.params]
        if not ctx.meta.get(_FULL, False):
            with formatter.section("Options"):
                formatter.write_dl(_describe([*self.common_options, *helps], ctx))
            return
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(VARIABLES)
        with formatter.section("Options"):
            formatter.write_dl([*_describe_fully(self.common_options, ctx), *_describe(helps, ctx)])
        for group in self.groups:
            with formatter.section(group.title):
                formatter.write_text(group.sentence)
                formatter.write_paragraph()
                found = [option for option in self.options if option.opts[-1] in group.options]
                formatter.write_dl(_describe_fully(found, ctx))

    def _make_full_help(self) -> click.Option:
        what = f"all {len(self.options)} options" if self.groups else "the options"
        return click.Option(
            ["--help-advanced"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_full_help,
            help=f"Show {what} with their environment variables.",
        )


_FULL = f"{__name__}.full"
"""Where a context keeps whether the help shows everything."""


def _show_full_help(context: click.Context, _option: click.Parameter, is_given: bool) -> None:
    if is_given and not context.resilient_parsing:
        context.meta[_FULL] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()


def _describe(options: Iterable[click.Parameter], context: click.Context) -> list[tuple[str, str]]:
    """Return name and help of each option."""
    return [record for option in options if (record := option.get_help_record(context))]


def _describe_fully(options: Sequence[click.Option], context: click.Context) -> list[tuple[str, str]]:
    """Return name, and help with the variable, of each option."""
    shown = [copy(option) for option in options]
    for option in shown:
        option.show_envvar = False
    records = zip(options, _describe(shown, context), strict=True)
    return [(name, f"{words}  [{option.envvar}]") for option, (name, words) in records]


def find_variable(option: click.Parameter, context: click.Context | None) -> str | None:
    """Return the environment variable that gave an option its value; None if the command line or the default did."""
    given = context.get_parameter_source(option.name) if context and option.name else None
    return option.envvar if given == ParameterSource.ENVIRONMENT and isinstance(option.envvar, str) else None
