"""`rowferry clean-uploads`: abort the multipart uploads that dead workers have left behind."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowferry_cli.durations import Duration
from rowferry_cli.options import plan_option, yes_option
from rowferry_cli.usage import confirm

if TYPE_CHECKING:
    from rowferry.plan import Plan
    from rowferry.s3.boto import Upload


@click.command("clean-uploads")
@plan_option
@click.option(
    "--older-than",
    type=Duration(),
    default="1d",
    show_default=True,
    help="Only uploads begun longer ago than this: 30m, 12h, 1d, 4w; younger ones may be under way.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Also uploads to keys that no legacy object goes to: no worker has begun those. Asks no legacy bucket.",
)
@yes_option
def command(plan_path: Path, older_than: timedelta, every: bool, yes: bool) -> None:
    """Find the multipart uploads that workers began in the production bucket and never ended, and abort them.

    A worker that is killed in the middle of a large object leaves the parts that it had sent; nobody sees them, and
    they cost money. Lists what it has found and asks. Only keys below the plan's production prefixes are looked at, and
    of those only the ones that a legacy object goes to. An upload that your application began to such a key, longer ago
    than --older-than, cannot be told from a worker's, and is aborted too. No object is touched: what is aborted had not
    become one.
    """
    import os

    from rowferry.errors import ObjectError, UsageError
    from rowferry.formatting import count, show_text
    from rowferry.plan_file import read_plan
    from rowferry.s3.boto import open_bucket
    from rowferry.s3.credentials import load_credentials
    from rowferry.s3.listing import find_left_uploads

    plan = read_plan(plan_path)
    side = plan.production
    try:
        with open_bucket(side, load_credentials(side, os.environ)) as bucket:
            found = list(find_left_uploads(bucket, plan, older_than))
            uploads = found if every else _choose_of_workers(plan, found)
            if others := len(found) - len(uploads):
                words = count(others, "upload is", "uploads are")
                click.echo(f"{words} left alone: no legacy object goes there, so no worker began that (see --all).")
            if not uploads:
                click.echo(f"No upload in {side.bucket} was left behind.")
                return
            for upload in uploads:
                click.echo(f"{upload.begun_at:%Y-%m-%d %H:%M:%S %Z}  {show_text(upload.key)}")
            left = count(len(uploads), "upload", "uploads")
            click.echo("Uploads that your application began to these keys are aborted too: they look the same.")
            if not yes:
                confirm(f"Abort {left} in the production bucket {side.bucket}?")
            for upload in uploads:
                bucket.abort_upload(upload)
    except ObjectError as error:
        raise UsageError(f"The uploads in {side.bucket} cannot be listed and aborted: {error}.") from error
    click.echo(f"Aborted {left}.")


def _choose_of_workers(plan: Plan, uploads: list[Upload]) -> list[Upload]:
    """Return the uploads that workers may have begun, by one HEAD each on the legacy side."""
    import os

    from rowferry.s3.boto import open_bucket
    from rowferry.s3.credentials import load_credentials
    from rowferry.s3.listing import has_legacy_object

    if not uploads:
        return []
    with open_bucket(plan.legacy, load_credentials(plan.legacy, os.environ)) as legacy:
        return [upload for upload in uploads if has_legacy_object(legacy, upload, plan)]
