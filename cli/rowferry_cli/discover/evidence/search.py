"""Finds out whether a column names existing objects: samples it, tries readings, and counts."""

from collections.abc import Sequence
from dataclasses import replace

from psycopg import sql

from rowferry.formatting import count
from rowferry_cli.discover.evidence.bucket import LegacyBucket
from rowferry_cli.discover.evidence.bucket_folders import list_prefixes
from rowferry_cli.discover.evidence.catalogue import EVERY_ROW, Catalogue, Column, UserTable
from rowferry_cli.discover.evidence.embedded import list_embedded
from rowferry_cli.discover.evidence.folders import find_folders
from rowferry_cli.discover.evidence.named import ColumnTexts, Named, merge_places
from rowferry_cli.discover.evidence.places import Placed, split_places
from rowferry_cli.discover.evidence.readings import (
    Reading,
    is_signed,
    may_be_key,
    mentions_bucket,
    suggest_readings,
    write_patterns,
)

FIRST_KEYS = 8
"""Of a column that are tried under each reading, and more if one exists; of a bucket that is known whole, all."""


class Search:
    """Samples columns and tries their texts as keys."""

    def __init__(self, catalogue: Catalogue, bucket: LegacyBucket, *, sample: int) -> None:
        """Sample up to so many rows of each column."""
        self._catalogue, self._bucket, self._sample = catalogue, bucket, sample
        self._prefixes, self._patterns = list_prefixes(bucket), write_patterns(bucket.side)
        self.unfound: list[ColumnTexts] = []
        """Places whose texts could be keys and name no object: parts of keys, perhaps."""
        self.beyond: list[tuple[ColumnTexts, str]] = []
        """Texts that name the bucket and are not proposed, with what is to say of them."""

    def look_at(self, table: UserTable, column: Column, condition: sql.Composable = EVERY_ROW) -> list[Named]:
        """Return the forms in which a column's texts name objects, in rows that meet a condition."""
        rows = self._catalogue.sample_column(table, column, self._sample, condition, self._patterns)
        places = split_places([row.value for row in rows], column.kind or "text")
        found: list[Named] = []
        for path, placed in places.items():
            of_place = ColumnTexts(table, column, path, tuple(placed))
            self._note_bucket(of_place)
            embedded = list_embedded(placed, self._bucket.side)
            if embedded and not self._are_keys(of_place, embedded):
                found += self._look_within(of_place, embedded)
                longer = {row for row, _ in embedded}
                of_place = replace(of_place, placed=tuple(one for one in placed if one[0] not in longer))
            named = self._try(of_place)
            folders = find_folders(self._bucket, of_place, named) if all(one.is_chance for one in named) else None
            if folders is not None:
                found.append(folders)
                continue
            found += named
            if all(one.is_chance for one in named) and any(map(may_be_key, of_place.texts)):
                self.unfound.append(of_place)
        return merge_places(found, [path for path in places if path is not None])

    def _are_keys(self, texts: ColumnTexts, embedded: Sequence[Placed]) -> bool:
        """Return whether most texts that are longer than their URLs name objects as a whole: keys may have blanks."""
        longer = {row for row, _ in {*embedded} - {*texts.placed}}
        whole = {row for one in self._try(texts) for row in one.existing_rows}
        return 2 * len(longer & whole) > len(longer)

    def _look_within(self, texts: ColumnTexts, embedded: Sequence[Placed]) -> list[Named]:
        """Return the forms of URLs inside longer texts of a column; those in documents are only noted."""
        named = self._try(replace(texts, placed=tuple(embedded)))
        if texts.path is None and texts.column.kind == "text":
            return [replace(one, is_within=True) for one in named]
        rows = len({row for one in named for row in one.existing_rows})
        if rows:
            what = f"{count(rows, 'sampled row holds', 'sampled rows hold')} URLs of objects inside longer texts"
            self.beyond.append((texts, f"{what} of a document, which no plan can rewrite"))
        return []

    def _note_bucket(self, texts: ColumnTexts) -> None:
        """Note a column of which some texts are the name of the bucket."""
        rows = len({row for row, text in texts.placed if text == self._bucket.side.bucket})
        if rows:
            what = f"{count(rows, 'sampled row holds', 'sampled rows hold')} the name of the legacy bucket"
            self.beyond.append((texts, f"{what}: change that when you switch the application"))

    def _try(self, texts: ColumnTexts) -> list[Named]:
        # A key that ends with a slash is a folder that a console has made.
        left = [(row, text) for row, text in texts.placed if may_be_key(text) and not text.endswith("/")]
        found: list[Named] = []
        if 10 * len(left) < len(texts.placed):
            left = [(row, text) for row, text in left if self._is_likely(text)]
        for reading in self._choose_readings([text for _, text in left]) if left else ():
            of_form = [(row, text) for row, text in left if reading.read(text) is not None]
            if of_form:
                found.append(self._count(texts, reading, of_form))
                left = [(row, text) for row, text in left if reading.read(text) is None]
        return found

    def _is_likely(self, text: str) -> bool:
        """Return whether a text names the bucket, or ends with one of its keys, so that it may be one of few."""
        return mentions_bucket(text, self._bucket.side) or self._bucket.keys.find_begin(text) is not None

    def _choose_readings(self, texts: Sequence[str]) -> list[Reading]:
        """Return the readings under which texts name objects: for each prefix of texts the one that most do under."""
        hits: dict[Reading, int] = {}
        suggested = suggest_readings(texts, self._bucket.side, self._prefixes, self._bucket.keys.find_begin)
        most = len(texts) if self._bucket.keys.is_whole else FIRST_KEYS
        keys = {reading: _pick_keys(reading, texts, most) for reading in suggested}
        existing = self._bucket.find(key for tried in keys.values() for key in tried)
        for reading, tried in keys.items():
            if any(key in existing for key in tried):
                hits[reading] = len(self._bucket.find(_pick_keys(reading, texts, 5 * most)))
        best: dict[str, Reading] = {}
        for reading in sorted(hits, key=lambda one: (-hits[one], suggested.index(one))):
            best.setdefault(reading.text_prefix, reading)
        # The longer prefix first: a text that has two is read by the longer one, unless that finds fewer.
        ranked = sorted(best.values(), key=lambda one: -len(one.text_prefix))
        return [one for one in ranked if not any(self._finds_more(other, one, texts) for other in ranked)]

    def _finds_more(self, one: Reading, longer: Reading, texts: Sequence[str]) -> bool:
        """Return whether a reading finds more objects than one of a longer prefix, by texts that have both."""
        if one == longer or not longer.text_prefix.startswith(one.text_prefix):
            return False
        both = [text for text in texts if text.startswith(longer.text_prefix)]
        counts = [len(self._bucket.find(_pick_keys(each, both, 5 * FIRST_KEYS))) for each in (one, longer)]
        return counts[0] > counts[1]

    def _count(self, texts: ColumnTexts, reading: Reading, of_form: Sequence[Placed]) -> Named:
        signed = frozenset(row for row, text in of_form if is_signed(text))
        of_form = [(row, text) for row, text in of_form if row not in signed] or of_form
        keys = {text: key for _, text in of_form if (key := reading.read(text)) is not None}
        return Named.of(texts, reading, of_form, keys, self._bucket.find(keys.values()), signed_rows=signed)


def _pick_keys(reading: Reading, texts: Sequence[str], most: int) -> list[str]:
    """Return different keys that texts name, from all over the sample."""
    keys = list(dict.fromkeys(key for text in texts if (key := reading.read(text)) is not None))
    return keys[:: max(1, len(keys) // most)][:most]
