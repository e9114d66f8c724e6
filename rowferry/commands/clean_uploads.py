"""`rowferry clean-uploads`: abort the multipart uploads that dead workers have left behind."""

import re
from datetime import timedelta
from pathlib import Path

import click

from rowferry.commands.options import plan_option, yes_option

_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


class Span(click.ParamType[timedelta]):
    """A span of time: a whole number and d, h, m or s."""

    name = "span"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the span. Fails with one sentence."""
        if isinstance(value, timedelta):
            return value
        found = re.fullmatch(r"(\d{1,6})([dhms])", str(value))
        if found is None:
            self.fail(f"{value!r} is no span of time: write 1d, 12h, 30m or 0s", param, ctx)
        return timedelta(**{_UNITS[found[2]]: int(found[1])})


@click.command("clean-uploads", short_help="Abort multipart uploads that dead workers have left behind.")
@plan_option
@click.option(
    "--older-than",
    type=Span(),
    default="1d",
    show_default=True,
    help="Only uploads begun longer ago than this: 1d, 12h, 30m; younger ones may be under way.",
)
@yes_option
def command(plan_path: Path, older_than: timedelta, yes: bool) -> None:
    """Find the multipart uploads that workers began in the production bucket and never ended, and abort them.

    A worker that is killed in the middle of a large object leaves the parts that it had sent; nobody sees them, and
    they cost money. Lists what it has found and asks. Only keys below the plan's production prefixes are looked at.
    The legacy bucket is never touched, and no object is: what is aborted had not become one.
    """
    import os

    from rowferry.credentials import load_credentials
    from rowferry.errors import ObjectError, UserMistake
    from rowferry.object_store import open_bucket
    from rowferry.plan_file import read_plan
    from rowferry.uploads import find_left_uploads
    from rowferry.wording import count

    plan = read_plan(plan_path)
    side = plan.production
    try:
        with open_bucket(side, load_credentials(side, os.environ)) as bucket:
            uploads = list(find_left_uploads(bucket, plan, older_than))
            if not uploads:
                click.echo(f"No upload in {side.bucket} was left behind.")
                return
            for upload in uploads:
                click.echo(f"{upload.begun_at:%Y-%m-%d %H:%M:%S %Z}  {upload.key}")
            left = count(len(uploads), "upload", "uploads")
            if not yes:
                click.confirm(f"Abort {left} in the production bucket {side.bucket}?", abort=True)
            for upload in uploads:
                bucket.abort_upload(upload)
    except ObjectError as error:
        raise UserMistake(f"The uploads in {side.bucket} cannot be listed and aborted: {error}.") from error
    click.echo(f"Aborted {left}.")
