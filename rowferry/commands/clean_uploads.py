"""`rowferry clean-uploads`: abort the multipart uploads that dead workers have left behind."""

from datetime import timedelta
from pathlib import Path

import click

from rowferry.commands.duration_options import Duration
from rowferry.commands.options import plan_option, yes_option
from rowferry.commands.questions import confirm


@click.command("clean-uploads", short_help="Abort multipart uploads that dead workers have left behind.")
@plan_option
@click.option(
    "--older-than",
    type=Duration(),
    default="1d",
    show_default=True,
    help="Only uploads begun longer ago than this: 30m, 12h, 1d, 4w; younger ones may be under way.",
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
    from rowferry.wording import count, show_text

    plan = read_plan(plan_path)
    side = plan.production
    try:
        with open_bucket(side, load_credentials(side, os.environ)) as bucket:
            uploads = list(find_left_uploads(bucket, plan, older_than))
            if not uploads:
                click.echo(f"No upload in {side.bucket} was left behind.")
                return
            for upload in uploads:
                click.echo(f"{upload.begun_at:%Y-%m-%d %H:%M:%S %Z}  {show_text(upload.key)}")
            left = count(len(uploads), "upload", "uploads")
            if not yes:
                confirm(f"Abort {left} in the production bucket {side.bucket}?")
            for upload in uploads:
                bucket.abort_upload(upload)
    except ObjectError as error:
        raise UserMistake(f"The uploads in {side.bucket} cannot be listed and aborted: {error}.") from error
    click.echo(f"Aborted {left}.")
