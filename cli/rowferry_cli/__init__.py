"""The command line: one file a command, loaded when it is called."""

import os
import signal
import sys
from importlib import import_module
from types import FrameType
from typing import NoReturn

import click

from rowferry import __version__
from rowferry.errors import RowferryError, WorkLeft
from rowferry.formatting import show_text
from rowferry_cli.usage import suggest_command, word_usage_error

WORK_LEFT = 3
"""Exit status of a worker that leaves work undone which is paused, or due much later."""

COMMANDS = {
    "demo": ("rowferry_lab.commands.demo", "Watch a whole migration on this machine, with servers of its own."),
    "plan": (".setup.plan", "Print an example plan, or what a plan says."),
    "init": (".setup.init", "Bring the schema `rowferry` of the database to this version."),
    "check": (
        ".setup.check",
        "Hold the plan against the real database and buckets; write and remove a probe object.",
    ),
    "status": (".observe.status", "Count entries by form, objects by bucket, batches by status."),
    "migrate": (".work.migrate", "The whole job in one command: check, enqueue, work, show progress."),
    "enqueue": (".work.enqueue", "Cut the legacy entries into batches and put them in the queue."),
    "worker": (".work.worker", "Work on batches until told to stop."),
    "exporter": (".observe.exporter", "Serve metrics of the whole queue, for Prometheus."),
    "watch": (".observe.watch", "Show progress, workers and errors live in the terminal."),
    "pause": (".operate.pause", "Let workers claim nothing more of a migration, until `resume`."),
    "resume": (".operate.resume", "Let a paused migration go on."),
    "errors": (".observe.errors", "Say what failed and why."),
    "requeue": (".operate.requeue", "Put batches in ERROR back in the queue."),
    "verify": (
        ".work.verify",
        "Hold every production object against its legacy object; repair what differs.",
    ),
    "revert": (".work.revert", "Point rows back at their legacy objects."),
    "report": (".observe.report", "Account for a migration: what became of its entries."),
    "clean-uploads": (
        ".operate.clean_uploads",
        "Abort multipart uploads that dead workers have left behind.",
    ),
    "prepare": (
        "rowferry_lab.commands.prepare",
        "Make a simulated environment: a table and two buckets of small pictures.",
    ),
    "sweep": (
        "rowferry_lab.commands.sweep",
        "Measure which batch size and parallelism are best, in a simulated environment.",
    ),
    "prune": (".operate.prune", "Forget batches that were finished long ago."),
    "completion": (".operate.completion", "Print the script that completes commands in your shell."),
}
"""Each command with its module and its line in `rowferry --help`, in the order in which a user meets them."""


class LazyGroup(click.Group):
    """Loads the module of a command only when it is called, so that every command starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of use."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, its module loaded; None when there is no such command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        return import_module(COMMANDS[cmd_name][0], __name__).command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names. Raises UsageError, with the nearest name, for others."""
        if not args[0].startswith("-") and args[0] not in COMMANDS and not ctx.resilient_parsing:
            ctx.fail(suggest_command(args[0], COMMANDS))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="rowferry %(version)s")
def cli() -> None:
    """Move S3 objects and the PostgreSQL rows that point at them, together.

    \b
    A migration in four commands:
      rowferry init                  once per database
      rowferry check                 the plan against the real thing; writes a probe object and removes it
      rowferry enqueue               cut the work into batches
      rowferry worker --until-empty  on as many hosts as you like
    or in one:
      rowferry migrate

    The plan is rowferry.toml (--plan, ROWFERRY_PLAN); the database is DATABASE_URL or PG*; the S3 credentials are
    ROWFERRY_LEGACY_* and ROWFERRY_PRODUCTION_*, an AWS profile, or what boto3 finds.
    """


def main() -> None:
    """Run the command line. A user's mistake is one sentence and exit status 2."""
    if os.getpid() == 1:  # the first process of a container, for which the kernel drops a SIGTERM that nobody asked for
        signal.signal(signal.SIGTERM, _end_by_signal)
    try:
        code = cli.main(prog_name="rowferry", standalone_mode=False)
    except click.exceptions.Abort:
        _fail("Nothing more was done.", 130)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except click.UsageError as error:
        _fail(word_usage_error(error), 2)
    except click.ClickException as error:
        _fail(error.format_message(), 2)
    except WorkLeft as left:
        _fail(str(left), WORK_LEFT)
    except RowferryError as error:
        _fail(str(error), 2)
    sys.exit(code if isinstance(code, int) else 0)


def _end_by_signal(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def _fail(sentence: str, status: int) -> NoReturn:
    end = "" if sentence.endswith((".", "?")) else "."
    click.secho(f"rowferry: {show_text(sentence)}{end}", err=True, fg="red" if status == 2 else None)
    sys.exit(status)
