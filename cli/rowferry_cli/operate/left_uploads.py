"""Which unfinished multipart uploads workers have left behind, and their end."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import click

from rowferry.db.connection import connect, translated_errors
from rowferry.db.statements import statement
from rowferry.errors import ObjectError, ObjectNotFound
from rowferry.formatting import count
from rowferry.keys import Form, find_legacy_key, object_prefixes
from rowferry.plan import Entries, ObjectPrefix, Plan
from rowferry.s3.client import ObjectClient
from rowferry.s3.operations import abort_multipart_upload, head_object
from rowferry.s3.retry import TRIES
from rowferry_cli.operate.unfinished_uploads import Upload, list_uploads


def choose_left_uploads(client: ObjectClient, legacy: ObjectClient, plan: Plan, older_than: timedelta) -> list[Upload]:
    """Return the uploads that workers started longer ago than `older_than` and that none will go on with.

    Say how many others there are. `client` and `legacy` are those of the two sides. Raises ObjectError.
    """
    known = _read_known(older_than)
    found = list(find_old_uploads(client, plan, older_than, sorted({key for key, _ in known})))
    left = [upload for upload in found if not known.get((upload.key, upload.id))]
    if others := len(found) - len(left):
        click.echo(f"Skipped {count(others, 'upload', 'uploads')} that workers will go on with.")
    uploads = [each for each in left if (each.key, each.id) in known or has_legacy_object(legacy, each, plan)]
    if others := len(left) - len(uploads):
        skipped = count(others, "upload", "uploads")
        click.echo(f"Skipped {skipped} to keys without a legacy object, which no worker has recorded.")
    return uploads


def _read_known(older_than: timedelta) -> dict[tuple[str, str], bool]:
    """Return the uploads that workers have recorded, by key and id, and whether one is at it or will go on with it."""
    with connect("clean-uploads") as connection, translated_errors():
        rows = connection.execute(statement("list_known_uploads"), {"younger_than": older_than}).fetchall()
    return {(row["key"], row["upload_id"]): row["is_continued"] for row in rows}


def find_old_uploads(
    client: ObjectClient, plan: Plan, older_than: timedelta, known_keys: Iterable[str]
) -> Iterator[Upload]:
    """Yield the uploads to production keys of the plan that were started longer ago than `older_than`.

    Where both sides are one bucket, keys that are legacy for any table of the plan are passed over. MinIO lists the
    uploads to one whole key, and none by any other prefix: it is asked for the keys that are known.
    """
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
    for part in plan.parts:
        try:
            legacy.ask(head_object("legacy", find_legacy_key(upload.key, part)), tries=TRIES)
        except (ValueError, ObjectNotFound):
            continue
        return True
    return False
