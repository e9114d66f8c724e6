"""From the text in a row to the keys of its objects, and to the text that the row is to hold. Pure.

A *text* is what the column holds, a *key* is the name of an object in a bucket. They are the same unless the plan says
otherwise (`legacy_object`, `production_object`, `encoding`, `objects`). No key is normalised.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rowferry.batch import Entry
from rowferry.plan import Entries, ObjectPrefix
from rowferry.urls import read_url, write_prefixes

Form = Literal["legacy", "production"]

SIGNED = r"[?&](x-amz-signature|x-goog-signature|signature)="
"""A presigned URL, as Python and PostgreSQL match it, whatever the case: it is valid for one bucket, so it is left as
it is. Source: Amazon S3 API Reference, "Authenticating Requests: Using Query Parameters"."""
_SIGNED = re.compile(SIGNED, re.IGNORECASE)

MAX_KEY_BYTES = 1024
"""The longest S3 key, in bytes of UTF-8. Source: Amazon S3 User Guide, "Naming Amazon S3 objects"."""


class ObjectKeys(Struct, frozen=True, gc=False):
    """One object, or one folder: where it is, and where it is to be."""

    legacy: str
    production: str
    is_required: bool = True
    """Whether the row may only move when it stands at both."""


class MappedText(NamedTuple):
    """The object of a text, and the text that takes its place."""

    keys: ObjectKeys
    text: str
    longer: ObjectKeys | None = None
    """Of a URL in a longer text: what it names if the signs at its end are part of it; either may be meant."""

    @property
    def objects(self) -> tuple[ObjectKeys, ...]:
        """All that the text may name."""
        return (self.keys,) if self.longer is None else (self.keys, self.longer)


class MappedEntry(NamedTuple):
    """The objects of an entry, and what its row holds once they are at the other side."""

    objects: tuple[ObjectKeys, ...]
    """Of [[entries]] that name folders: what the keys of their objects begin with."""
    new_key: str


PlainEntry = tuple[tuple[ObjectKeys, ...], str]
"""The same without the names of its fields, which is made in a fifth of the time."""


class StandingObject(Struct, frozen=True, gc=False):
    """An object that a production row points at."""

    production: str
    legacy: str | None
    """None where no legacy text becomes this one: the application wrote it."""
    is_required: bool = True


OTHER: Mapping[Form, Form] = {"legacy": "production", "production": "legacy"}
"""The form that rows of a form are to have, or have had."""


def is_finer(entries: Entries, form: Form) -> bool:
    """Return whether a text that has both prefixes has this form: production where its prefix begins with the other."""
    is_production = entries.production_prefix.startswith(entries.legacy_prefix)
    return entries.has_two_texts and is_production == (form == "production")


def write_url_pattern(entries: Entries) -> str:
    """Return what finds the beginnings of the URLs in a longer text, for PostgreSQL."""
    return write_prefixes(sorted({entries.legacy_prefix, entries.production_prefix}, key=len, reverse=True))


def leaves_signed(entries: Entries) -> bool:
    """Return whether texts are URLs that are rewritten, so that presigned ones have no form."""
    return entries.encoding == "percent" and entries.has_two_texts


def prefix_of(entries: Entries, form: Form) -> str:
    """Return what the texts of a form begin with; rows that stay keep their legacy texts."""
    return entries.production_prefix if form == "production" and entries.has_two_texts else entries.legacy_prefix


def has_form(text: str | None, entries: Entries, form: Form) -> bool:
    """Return whether a text has this form, as is_legacy and is_production of sql/queries/fragments.sql see it.

    Where legacy and production rows hold the same text, it has both or none.
    """
    if not text:  # An empty text names no object, whatever the prefixes.
        return False
    if leaves_signed(entries) and _SIGNED.search(text):
        return False
    is_legacy = text.startswith(prefix_of(entries, "legacy"))
    is_production = text.startswith(prefix_of(entries, "production"))
    if form == "legacy":
        return is_legacy and not (is_production and is_finer(entries, "production"))
    return is_production and not (is_legacy and is_finer(entries, "legacy"))


def map_text(text: str, entries: Entries, to: Form = "production") -> MappedText:
    """Return the object of a text, and the text that takes its place: the same bytes after the other prefix.

    Raises ValueError, which says why, when the text does not have the other form, or what it becomes is unusable.
    """
    new_text = rewrite_text(text, entries, to)
    rest = text[len(prefix_of(entries, OTHER[to])) :]
    if entries.within is None:
        return MappedText(name_object(entries, entries.decode(rest), to), new_text)
    short, long = read_url(rest)
    longer = None if long is None else replace(name_object(entries, entries.decode(long), to), is_required=False)
    return MappedText(name_object(entries, entries.decode(short), to), new_text, longer)


def rewrite_text(text: str, entries: Entries, to: Form = "production") -> str:
    """Return the text that takes the place of one, whatever objects they name. Raises ValueError as `map_text`."""
    origin = OTHER[to]
    if not has_form(text, entries, origin):
        raise ValueError(f"the key does not have the {origin} form")
    new_text = prefix_of(entries, to) + text[len(prefix_of(entries, origin)) :]
    if not new_text:
        raise ValueError(f"the {to} key would be empty")
    if not has_form(new_text, entries, to):
        raise ValueError(f"the {to} key would still have the {origin} form")
    return new_text


def name_object(entries: Entries | ObjectPrefix, rest: str, to: Form = "production") -> ObjectKeys:
    """Return the keys of the object that has this behind its prefix on both sides; `to`: the side it is to be at.

    Raises ValueError where a key is unusable.
    """
    keys = ObjectKeys(entries.legacy_object_prefix + rest, entries.production_object_prefix + rest)
    for form, key in (("legacy", keys.legacy), ("production", keys.production)):
        if not key:
            raise ValueError(f"the {form} key would be empty")
        if form == to and len(key.encode()) > MAX_KEY_BYTES:
            raise ValueError(f"the {form} key would be longer than {MAX_KEY_BYTES} bytes")
    return keys


def map_object(key: str, entries: Entries | ObjectPrefix, *, is_required: bool = True) -> ObjectKeys:
    """Return both keys of an object, given the legacy one. Raises ValueError where it has no usable production key."""
    prefix = entries.legacy_object_prefix
    if not key.startswith(prefix):
        raise ValueError(f"its object {key!r} does not begin with {prefix!r}")
    return replace(name_object(entries, key[len(prefix) :]), is_required=is_required)


def map_entry(entry: Entry, entries: Entries, to: Form = "production") -> MappedEntry:
    """Return the objects of an entry, and what its row is to hold. Raises ValueError as `map_text` and `map_object`."""
    mapped = _map_entry(entry, entries, to)
    if not entries.names_folders:
        return mapped
    return MappedEntry(tuple(name_folder(each, entries) for each in mapped.objects), mapped.new_key)


def name_folder(keys: ObjectKeys, entries: Entries) -> ObjectKeys:
    """Return what the keys of a folder's objects begin with, up to and with a `/`: `a/b` is not part of `a/bc`."""
    legacy, production = (key if key.endswith("/") else f"{key}/" for key in (keys.legacy, keys.production))
    return ObjectKeys(legacy, production, keys.is_required and not entries.may_be_empty)


def map_plain(found: Iterable[Entry], entries: Entries, to: Form = "production") -> Iterator[PlainEntry | None]:
    """Yield what `map_entry` returns of each entry whose text is a usable key; None where that has to find out.

    One loop for what most plans are; a character is four bytes at most.
    """
    is_plain = entries.encoding == "none" and not entries.has_places
    is_plain = is_plain and not (entries.computes_objects or entries.names_folders)
    old, new = prefix_of(entries, OTHER[to]), prefix_of(entries, to)
    legacy, production = entries.legacy_object_prefix, entries.production_object_prefix
    target = production if to == "production" else legacy
    has_two_texts, is_new_finer = entries.has_two_texts, is_finer(entries, to)
    for entry in found:
        text = entry.key
        rest = text[len(old) :]
        new_text = new + rest
        is_usable = is_plain and rest and text.startswith(old) and len(target) + len(rest) <= MAX_KEY_BYTES // 4
        has_both = has_two_texts and (text.startswith(new) if is_new_finer else new_text.startswith(old))
        yield ((ObjectKeys(legacy + rest, production + rest),), new_text) if is_usable and not has_both else None


def _map_entry(entry: Entry, entries: Entries, to: Form) -> MappedEntry:
    if not entries.computes_objects and not entries.has_places:
        mapped_text = map_text(entry.key, entries, to)
        return MappedEntry(mapped_text.objects, mapped_text.text)
    if entries.computes_objects and not entries.has_two_texts:
        return MappedEntry(tuple(_map_computed(entry, entries)), entry.key)
    texts = _list_texts(entry.key, entries)
    origin = OTHER[to]
    mapping = {place: text for place, text in texts.items() if has_form(text, entries, origin)}
    if not mapping:
        raise ValueError(f"the key does not have the {origin} form")
    if entries.computes_objects:
        rewritten = {place: rewrite_text(text, entries, to) for place, text in mapping.items()}
        return MappedEntry(tuple(_map_computed(entry, entries)), _write_texts(texts | rewritten, entries))
    mapped = {place: map_text(text, entries, to) for place, text in mapping.items()}
    new_texts = texts | {place: each.text for place, each in mapped.items()}
    objects = tuple(keys for each in mapped.values() for keys in each.objects)
    return MappedEntry(objects, _write_texts(new_texts, entries))


def find_objects(entry: Entry, entries: Entries) -> Iterator[StandingObject]:
    """Yield the objects, or the folders, that a production row points at. Raises ValueError where a text names none."""
    for each in _find_objects(entry, entries):
        yield _name_standing_folder(each, entries) if entries.names_folders else each


def _name_standing_folder(each: StandingObject, entries: Entries) -> StandingObject:
    keys = name_folder(ObjectKeys(each.legacy or "", each.production, each.is_required), entries)
    return StandingObject(keys.production, None if each.legacy is None else keys.legacy, keys.is_required)


def _find_objects(entry: Entry, entries: Entries) -> Iterator[StandingObject]:
    if entries.computes_objects:
        for keys in _map_computed(entry, entries):
            yield StandingObject(keys.production, keys.legacy, keys.is_required)
        return
    for text in _list_texts(entry.key, entries).values():
        if has_form(text, entries, "production"):
            try:
                for keys in map_text(text, entries, "legacy").objects:
                    yield StandingObject(keys.production, keys.legacy, keys.is_required)
            except ValueError:
                rest = text[len(prefix_of(entries, "production")) :]
                rest = entries.decode(rest if entries.within is None else read_url(rest)[0])
                yield StandingObject(entries.production_object_prefix + rest, None)


def _map_computed(entry: Entry, entries: Entries) -> Iterator[ObjectKeys]:
    for keys, is_required in ((entry.objects, True), (entry.optional, False)):
        yield from (map_object(key, entries, is_required=is_required) for key in keys)


def _list_texts(key: str, entries: Entries) -> dict[str, str]:
    """Return the texts of a row by their places in the column, as rowferry/db/entries.py reads them."""
    return {"": key} if not entries.has_places else msgspec.json.decode(key, type=dict[str, str])


def _write_texts(texts: Mapping[str, str], entries: Entries) -> str:
    """Return texts by their places as rowferry/db/entries.py writes them."""
    return texts[""] if not entries.has_places else msgspec.json.encode(texts).decode()


def are_same(one: str, other: str, entries: Entries) -> bool:
    """Return whether a row holds the same texts, as PostgreSQL and as `map_entry` write them."""
    return one == other or (entries.has_places and _list_texts(one, entries) == _list_texts(other, entries))


def object_prefixes(entries: Sequence[Entries | ObjectPrefix], form: Form) -> list[str]:
    """Return what the keys of the objects of one side begin with, each once."""
    prefixes = (each.legacy_object_prefix if form == "legacy" else each.production_object_prefix for each in entries)
    return list(dict.fromkeys(prefixes))


def find_legacy_key(key: str, entries: Entries | ObjectPrefix) -> str:
    """Return the legacy key of the object that stands at a production key. Raises ValueError where there is none."""
    prefix = entries.production_object_prefix
    if not key.startswith(prefix):
        raise ValueError("the key does not have the production form")
    return name_object(entries, key[len(prefix) :], "legacy").legacy
