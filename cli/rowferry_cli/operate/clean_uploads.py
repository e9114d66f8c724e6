"""`rowferry clean-uploads`: abort abandoned multipart uploads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowferry_cli.command import Command
from rowferry_cli.messages import confirm
from rowferry_cli.options import Duration, plan_option, yes_option

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rowferry.keys import Form
    from rowferry.plan import Entries, ObjectPrefix, Plan
    from rowferry.s3.client import ObjectClient
    from rowferry_cli.operate.unfinished_uploads import Upload


@click.command("clean-uploads", cls=Command)
@plan_option
@click.option(
    "--older-than",
    type=Duration(),
    default="1d",
    show_default=True,
    help="Only uploads started longer ago than this: 30m, 12h, 1d, 4w; younger ones may be running.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Also uploads to keys without a legacy object, which no worker started. Does not read the legacy bucket.",
)
@yes_option
def command(plan_path: Path, older_than: timedelta, every: bool, yes: bool) -> None:
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

    plan = read_plan(plan_path)
    plan.require_both_sides()
    side = plan.production
    try:
        with closing(open_object_client(side)) as client:
            known = _read_known(older_than)
            keys = sorted({key for key, _ in known})
            found = _leave_continued(list(find_left_uploads(client, plan, older_than, keys)), known)
            uploads = found if every else _choose_of_workers(plan, found)
            if others := len(found) - len(uploads):
                skipped = count(others, "upload", "uploads")
                click.echo(f"Skipped {skipped} to keys without a legacy object, which no worker started (see --all).")
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


def _read_known(older_than: timedelta) -> dict[tuple[str, str], bool]:
    """Return the uploads that workers have recorded, by key and id, and whether one is at it or will go on with it."""
    from rowferry.db.connection import connect, translated_errors
    from rowferry.db.statements import statement

    with connect("clean-uploads") as connection, translated_errors():
        rows = connection.execute(statement("list_known_uploads"), {"younger_than": older_than}).fetchall()
    return {(row["key"], row["upload_id"]): row["is_continued"] for row in rows}


def _leave_continued(uploads: list[Upload], known: Mapping[tuple[str, str], bool]) -> list[Upload]:
    """Return the uploads that no worker is at or will go on with, and say how many others there are."""
    from rowferry.formatting import count

    left = [upload for upload in uploads if not known.get((upload.key, upload.id))]
    if others := len(uploads) - len(left):
        click.echo(f"Skipped {count(others, 'upload', 'uploads')} that workers will go on with.")
    return left


def _choose_of_workers(plan: Plan, uploads: list[Upload]) -> list[Upload]:
    """Return the uploads that workers may have started, by one HEAD each on the legacy side."""
    from contextlib import closing

    from rowferry.s3.client import open_object_client

    if not uploads:
        return []
    with closing(open_object_client(plan.legacy)) as legacy:
        return [upload for upload in uploads if has_legacy_object(legacy, upload, plan)]


def find_left_uploads(
    client: ObjectClient, plan: Plan, older_than: timedelta, known_keys: Iterable[str] = ()
) -> Iterator[Upload]:
    """Yield the uploads to production keys of the plan that were started longer ago than `older_than`.

    Where both sides are one bucket, keys that are legacy for any table of the plan are passed over. MinIO lists the
    uploads to one whole key, and none by any other prefix: it is asked for the keys that are known.
    """
    from functools import partial

    from rowferry.keys import object_prefixes
    from rowferry.s3.retry import TRIES
    from rowferry_cli.operate.unfinished_uploads import list_uploads

    latest = datetime.now(UTC) - older_than
    seen: set[tuple[str, str]] = set()
    for prefix in (*object_prefixes(plan.parts, "production"), *known_keys):
        for upload in list_uploads(partial(client.ask, tries=TRIES), "production", prefix):
            known = (upload.key, upload.id)
            if known not in seen and upload.begun_at < latest and is_ours(upload.key, plan):
                seen.add(known)
                yield upload


def abort(client: ObjectClient, upload: Upload) -> None:
    """Give an upload up and free its parts, if it is still there; raises ObjectError."""
    from rowferry.errors import ObjectError
    from rowferry.s3.operations import abort_multipart_upload
    from rowferry.s3.retry import TRIES

    try:
        client.ask(abort_multipart_upload(upload.key, upload_id=upload.id), tries=TRIES)
    except ObjectError as error:
        if error.code != "NoSuchUpload":
            raise


def is_ours(key: str, plan: Plan) -> bool:
    """Return whether workers write this key: production for some table, and legacy in the same bucket for none."""
    forms = {_form_of_object(key, part) for part in plan.parts}
    same_bucket = (plan.legacy.bucket, plan.legacy.endpoint_url) == (
        plan.production.bucket,
        plan.production.endpoint_url,
    )
    return "production" in forms and not (same_bucket and "legacy" in forms)


def _form_of_object(key: str, part: Entries | ObjectPrefix) -> Form | None:
    """Return which side's prefix the key of an object begins with, the longer of two; None: neither."""
    prefixes: dict[Form, str] = {
        "legacy": part.legacy_object_prefix,
        "production": part.production_object_prefix,
    }
    found: list[tuple[int, Form]] = [(len(prefix), form) for form, prefix in prefixes.items() if key.startswith(prefix)]
    return max(found)[1] if found else None


def has_legacy_object(legacy: ObjectClient, upload: Upload, plan: Plan) -> bool:
    """Return whether the key of an upload is one that a legacy object goes to: workers begin no others.

    One HEAD; raises ObjectError when the legacy side cannot be asked.
    """
    from rowferry.errors import ObjectNotFound
    from rowferry.keys import find_legacy_key
    from rowferry.s3.operations import head_object
    from rowferry.s3.retry import TRIES

    for part in plan.parts:
        try:
            legacy.ask(head_object("legacy", find_legacy_key(upload.key, part)), tries=TRIES)
        except (ValueError, ObjectNotFound):
            continue
        return True
    return False
