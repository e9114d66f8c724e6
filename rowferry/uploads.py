"""Multipart uploads that dead workers have left behind in the production bucket: found, and aborted."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from rowferry.errors import ObjectNotFound
from rowferry.keys import form_of_key, legacy_key
from rowferry.object_store import Bucket, Upload
from rowferry.plan import Plan


def find_left_uploads(bucket: Bucket, plan: Plan, older_than: timedelta) -> Iterator[Upload]:
    """Yield the uploads to production keys of the plan that were begun longer ago than `older_than`.

    Where both sides are one bucket, keys that are legacy for any table of the plan are passed over.
    """
    latest = datetime.now(UTC) - older_than
    seen: set[tuple[str, str]] = set()
    for prefix in dict.fromkeys(entries.production_prefix for entries in plan.entries):
        for upload in bucket.list_uploads(prefix):
            known = (upload.key, upload.id)
            if known not in seen and upload.begun_at < latest and is_ours(upload.key, plan):
                seen.add(known)
                yield upload


def is_ours(key: str, plan: Plan) -> bool:
    """Return whether workers write this key: production for some table, and legacy in the same bucket for none."""
    forms = {form_of_key(key, entries) for entries in plan.entries}
    same_bucket = (plan.legacy.bucket, plan.legacy.endpoint_url) == (
        plan.production.bucket,
        plan.production.endpoint_url,
    )
    return "production" in forms and not (same_bucket and "legacy" in forms)


def has_legacy_object(legacy: Bucket, upload: Upload, plan: Plan) -> bool:
    """Return whether the key of an upload is one that a legacy object goes to: workers begin no others.

    One HEAD; raises ObjectError when the legacy side cannot be asked.
    """
    for entries in plan.entries:
        try:
            legacy.head(legacy_key(upload.key, entries))
        except (ValueError, ObjectNotFound):
            continue
        return True
    return False
