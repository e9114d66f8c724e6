"""Which form a key has, and which production key a legacy key becomes. Pure; no key is normalised."""

from typing import Literal

from rowferry.plan import Entries

KeyForm = Literal["legacy", "production", "unexpected"]

MAX_KEY_BYTES = 1024
"""The longest S3 key, in bytes of UTF-8. Source: Amazon S3 User Guide, "Naming Amazon S3 objects"."""


def production_is_finer(entries: Entries) -> bool:
    """Return whether the production prefix begins with the legacy prefix: a key that has both is production then."""
    return entries.production_prefix.startswith(entries.legacy_prefix)


def form_of_key(key: str | None, entries: Entries) -> KeyForm:
    """Return the form of a key, as is_legacy and is_production of sql/queries/fragments.sql see it."""
    if not key:  # An empty key names no object, whatever the prefixes.
        return "unexpected"
    is_legacy = key.startswith(entries.legacy_prefix)
    is_production = key.startswith(entries.production_prefix)
    if is_legacy and is_production:
        return "production" if production_is_finer(entries) else "legacy"
    return "legacy" if is_legacy else "production" if is_production else "unexpected"


def legacy_key(key: str, entries: Entries) -> str:
    """Return the legacy key that `production_key` maps to this key.

    Raises ValueError, which says why, where there is none.
    """
    if form_of_key(key, entries) != "production":
        raise ValueError("the key does not have the production form")
    mapped = entries.legacy_prefix + key[len(entries.production_prefix) :]
    if not mapped:
        raise ValueError("the legacy key would be empty")
    if len(mapped.encode()) > MAX_KEY_BYTES:
        raise ValueError(f"the legacy key would be longer than {MAX_KEY_BYTES} bytes")
    if form_of_key(mapped, entries) != "legacy":
        raise ValueError("the legacy key would have the production form")
    return mapped


def production_key(key: str, entries: Entries) -> str:
    """Return the production key of a legacy key: the same bytes after the other prefix.

    Raises ValueError, which says why, when the key is not legacy or its production key would be unusable.
    """
    if form_of_key(key, entries) != "legacy":
        raise ValueError("the key does not have the legacy form")
    mapped = entries.production_prefix + key[len(entries.legacy_prefix) :]
    if not mapped:
        raise ValueError("the production key would be empty")
    if len(mapped.encode()) > MAX_KEY_BYTES:
        raise ValueError(f"the production key would be longer than {MAX_KEY_BYTES} bytes")
    if form_of_key(mapped, entries) != "production":
        raise ValueError("the production key would still have the legacy form")
    return mapped
