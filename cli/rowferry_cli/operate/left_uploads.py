"""Finds the multipart uploads that workers began and left, by their keys."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from rowferry.errors import ObjectNotFound
from rowferry.keys import Form, find_legacy_key, object_prefixes
from rowferry.plan import Entries, ObjectPrefix, Plan
from rowferry.s3.boto import Bucket, Upload


def find_left_uploads(
    bucket: Bucket, plan: Plan, older_than: timedelta, known_keys: Iterable[str] = ()
) -> Iterator[Upload]:
    """Yield the uploads to production keys of the plan that were started longer ago than `older_than`.

    Where both sides are one bucket, keys that are legacy for any table of the plan are passed over. MinIO lists the
    uploads to one whole key, and none by any other prefix: it is asked for the keys that are known.
    """
    latest = datetime.now(UTC) - older_than
    seen: set[tuple[str, str]] = set()
    for prefix in (*object_prefixes(plan.parts, "production"), *known_keys):
        for upload in bucket.list_uploads(prefix):
            known = (upload.key, upload.id)
            if known not in seen and upload.begun_at < latest and is_ours(upload.key, plan):
                seen.add(known)
                yield upload


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


def has_legacy_object(legacy: Bucket, upload: Upload, plan: Plan) -> bool:
    """Return whether the key of an upload is one that a legacy object goes to: workers begin no others.

    One HEAD; raises ObjectError when the legacy side cannot be asked.
    """
    for part in plan.parts:
        try:
            legacy.head(find_legacy_key(upload.key, part))
        except (ValueError, ObjectNotFound):
            continue
        return True
    return False
