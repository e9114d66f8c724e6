"""`rowferry clean-uploads`: abort abandoned multipart uploads."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click

from rowferry_cli.command import Command
from rowferry_cli.messages import confirm
from rowferry_cli.options import Duration, plan_option, yes_option


@click.command("clean-uploads", cls=Command)
@plan_option
@click.option(
    "--older-than",
    type=Duration(),
    default="1d",
    show_default=True,
    help="Only uploads started longer ago than this: 30m, 12h, 1d, 4w; younger ones may be running.",
)
@yes_option
def command(plan_path: Path, older_than: timedelta, yes: bool) -> None:
    """Find multipart uploads that workers started in the production bucket and never finished, and abort them.

    The parts of a large object that was not finished stay behind for the next attempt: invisible, but billed. Where
    nothing will go on with them, for example because the batch is in ERROR, this command aborts them. It lists the
    uploads and asks. It considers only keys below the plan's production prefixes that belong to a legacy object. An
    upload of your application to such a key that is older than --older-than looks the same, and is aborted too. No
    object is touched.
    """
    from contextlib import closing

    from rowferry.errors import ObjectError, UsageError
    from rowferry.formatting import count, show_text
    from rowferry.plan_file import read_plan
    from rowferry.s3.client import open_object_client
    from rowferry_cli.operate.left_uploads import abort, choose_left_uploads

    plan = read_plan(plan_path)
    plan.require_both_sides()
    side = plan.production
    try:
        with closing(open_object_client(side)) as client, closing(open_object_client(plan.legacy)) as legacy:
            uploads = choose_left_uploads(client, legacy, plan, older_than)
            if not uploads:
                click.echo(f"No upload was left behind in {side.bucket}.")
                return
            for upload in uploads:
                click.echo(f"{upload.begun_at:%Y-%m-%d %H:%M:%S %Z}  {show_text(upload.key)}")
            left = count(len(uploads), "upload", "uploads")
            click.echo("Uploads of your application to these keys look the same and are aborted too.")
            if not yes:
                confirm(f"Abort {left} in the production bucket {side.bucket}?")
            for upload in uploads:
                abort(client, upload)
    except ObjectError as error:
        raise UsageError(f"The uploads in {side.bucket} cannot be listed and aborted: {error}.") from error
    click.echo(f"Aborted {left}.")
