"""The command line: one file per command, loaded when the command is called."""

import errno
import os
import signal
import sys
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import click

from rowferry import __version__
from rowferry.errors import RowferryError, UsageError, WorkLeft
from rowferry.formatting import show_text
from rowferry_cli.messages import describe_usage_error, suggest_command
from rowferry_cli.output import close_output, fit_streams

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

WORK_LEFT = 3
"""Exit status of a worker that leaves work undone because it is paused or due much later."""

ENTRY_POINTS = "rowferry.commands"
"""The entry-point group through which other distributions add commands."""

SECTIONS = {
    "Set up": {
        "plan": ("setup.plan", "Explain your plan, or write one for your database and buckets."),
        "init": ("setup.init", "Create or update the schema `rowferry` in the database."),
        "check": ("setup.check", "Check the plan against the database and the buckets; write and remove a probe."),
        "estimate": ("estimate.command", "Estimate requests, bytes, hours and dollars; only read."),
    },
    "Work": {
        "migrate": ("migrate.command", "Run a whole migration: check, enqueue, work, show progress."),
        "enqueue": ("work.enqueue", "Put the legacy entries into the queue, in batches."),
        "worker": ("work.worker", "Process batches until it is stopped."),
        "run": ("work.run", "Run one pass of any queue, and of the queues that follow it."),
        "cutover": ("cutover.command", "Repeat short passes, say when to switch the application, make the last pass."),
        "verify": ("work.verify", "Compare every production object with its legacy object; repair on request."),
        "revert": ("work.revert", "Point rows back at their legacy objects."),
    },
    "Look": {
        "status": ("observe.status", "Count entries, objects and batches."),
        "queues": ("observe.queues", "List the queues that are known, what waits in them, and who serves them."),
        "watch": ("watch.command", "Show progress, workers and errors live in the terminal."),
        "errors": ("observe.errors", "List what failed, and why."),
        "report": ("report.command", "Report what happened to every entry."),
        "exporter": ("observe.exporter", "Serve metrics of the whole queue for Prometheus."),
    },
    "Operate": {
        "pause": ("operate.pause", "Stop workers from claiming new batches; running batches finish."),
        "resume": ("operate.pause:resume", "Resume a paused migration."),
        "requeue": ("operate.requeue", "Put batches in ERROR back into the queue."),
        "prune": ("operate.prune", "Delete batches that finished long ago, and migrations."),
        "clean-uploads": ("operate.clean_uploads", "Abort abandoned multipart uploads."),
    },
}
"""Each command with its module (and its function's name, unless that is `command`) and its line in the help."""

COMMANDS = {name: module for section in SECTIONS.values() for name, (module, _) in section.items()}

LAB_COMMANDS = ("demo", "prepare", "sweep")
"""Commands of the distribution rowferry-lab, which a migration does not need."""


class LazyGroup(click.Group):
    """Loads a command's module only when the command is called, so that every command starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all commands, those of other distributions last."""
        del ctx
        return [*COMMANDS, *_find_entry_points()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, its module loaded; None when there is no such command."""
        del ctx
        if cmd_name in COMMANDS:
            module, _, name = COMMANDS[cmd_name].partition(":")
            return getattr(import_module(f"{__name__}.{module}"), name or "command")
        found = _find_entry_points().get(cmd_name)
        return found.load() if found else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names. Raises UsageError with the nearest name if unknown."""
        name = args[0]
        if not name.startswith("-") and name not in COMMANDS and not ctx.resilient_parsing:
            others = _find_entry_points()
            if name in {*LAB_COMMANDS} - {*others}:
                remedy = "`pip install 'rowferry[demo]'`, or in a checkout `pip install . ./lab`"
                raise UsageError(f"`rowferry {name}` comes with another package: run {remedy}.")
            if name not in others:
                ctx.fail(suggest_command(name, [*COMMANDS, *others]))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands in sections; load only those of other distributions."""
        del ctx
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, line) for name, (_, line) in section.items()])
        if others := _find_entry_points():
            with formatter.section("Try out"):
                formatter.write_dl([(name, found.load().get_short_help_str(80)) for name, found in others.items()])


def _find_entry_points() -> "dict[str, EntryPoint]":
    """Return the commands of other distributions. Reads the metadata of all installed packages: some 20 ms."""
    from importlib.metadata import entry_points

    return {found.name: found for found in entry_points(group=ENTRY_POINTS) if found.name not in COMMANDS}


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="rowferry %(version)s")
def cli() -> None:
    """Move S3 objects and the PostgreSQL rows that point at them, together.

    Objects are copied from the legacy bucket, which is only read, to the production bucket, which is written. Then
    their rows are updated. Nothing is deleted.

    \b
    A migration in four commands:
      rowferry init                  once per database
      rowferry check                 compare the plan with the database and the buckets
      rowferry enqueue               put the work into the queue
      rowferry worker --until-empty  on as many hosts as you like
    or in one:
      rowferry migrate

    The plan is rowferry.toml (--plan, ROWFERRY_PLAN). The database is DATABASE_URL or PG*. The S3 credentials are
    ROWFERRY_LEGACY_* and ROWFERRY_PRODUCTION_*, an AWS profile, or what boto3 finds.

    After a command, --help shows the options that most people need, --help-advanced all of them with their environment
    variables.

    Shell completion: `eval "$(_ROWFERRY_COMPLETE=bash_source rowferry)"`; zsh_source and fish_source work too.
    """


def main() -> None:
    """Run the command line. A usage error is one sentence and exit status 2."""
    if os.getpid() == 1:  # in a container, where the kernel drops a SIGTERM that has no handler
        signal.signal(signal.SIGTERM, _exit_on_signal)
    fit_streams()
    try:
        code = cli.main(prog_name="rowferry", standalone_mode=False)
    except click.exceptions.Abort:
        _fail("Aborted.", 130)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except click.UsageError as error:
        _fail(describe_usage_error(error), 2)
    except click.ClickException as error:
        _fail(error.format_message(), 2)
    except WorkLeft as left:
        _fail(str(left), WORK_LEFT)
    except RowferryError as error:
        _fail(str(error), 2)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        close_output()
        _fail(f"The output is incomplete: {error.strerror}", 2)
    sys.exit(code if isinstance(code, int) else 0)


def _exit_on_signal(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def _fail(sentence: str, status: int) -> NoReturn:
    end = "" if sentence.endswith((".", "?")) else "."
    click.secho(f"rowferry: {show_text(sentence)}{end}", err=True, fg="red" if status == 2 else None)
    sys.exit(status)
