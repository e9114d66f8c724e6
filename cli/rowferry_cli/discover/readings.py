"""How the text of a column may name an object: as the key itself, as a URL, encoded, or behind a prefix. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from rowferry.keys import MAX_KEY_BYTES
from rowferry.plan import Side

MAX_BASES = 6
"""URL bases of one column that are looked at, the commonest first."""

_BASE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//[^/\s?#]+/", re.IGNORECASE)
_UNFIT = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Reading:
    """An object's key is `object_prefix` and what follows `text_prefix`, decoded where the text is encoded."""

    text_prefix: str = ""
    object_prefix: str = ""
    is_encoded: bool = False

    def read(self, text: str) -> str | None:
        """Return the key that a text names; None where it names none."""
        if not text.startswith(self.text_prefix):
            return None
        rest = text[len(self.text_prefix) :]
        if self.is_encoded:
            try:
                rest = unquote(rest.partition("#")[0].partition("?")[0], errors="strict")
            except UnicodeDecodeError:
                return None
        key = self.object_prefix + rest
        return key if rest and not _UNFIT.search(key) and len(key.encode(errors="replace")) <= MAX_KEY_BYTES else None

    @property
    def is_whole(self) -> bool:
        """Return whether the text is the key."""
        return self.text_prefix == self.object_prefix and not self.is_encoded

    @property
    def is_url(self) -> bool:
        """Return whether the text is a URL."""
        return _BASE.match(self.text_prefix) is not None


def may_be_key(text: str) -> bool:
    """Return whether a text could name an object: some keys are short or have blanks, none breaks lines."""
    if not text or len(text) > 4096 or _UNFIT.search(text):
        return False
    if "/" in text or re.search(r"\.\w{1,8}(?:[?#].*)?$", text):
        return text.count(" ") < 12
    return len(text) >= 8 and " " not in text and not re.fullmatch(r"[\d.:+\-]+|[^@\s]+@[^@\s]+\.\w+", text)


def suggest_readings(texts: Iterable[str], side: Side, prefixes: Sequence[str]) -> list[Reading]:
    """Return the readings that fit the form of some texts, the likelier first; `prefixes`: folders of the bucket."""
    listed = list(texts)
    bases = Counter(match[0] for text in listed if (match := _BASE.match(text)))
    found: list[Reading] = []
    for base, _ in bases.most_common(MAX_BASES):
        of_base = [text for text in listed if text.startswith(base)]
        found += _suggest(base, of_base, side.bucket, prefixes)
    plain = [text for text in listed if not _BASE.match(text)]
    if plain:
        found += _suggest("", [text for text in plain if not text.startswith("/")], side.bucket, prefixes)
        found += _suggest("/", [text for text in plain if text.startswith("/")], side.bucket, prefixes)
    return list(dict.fromkeys(found))


def _suggest(base: str, texts: Sequence[str], bucket: str, prefixes: Sequence[str]) -> Iterable[Reading]:
    """Yield the readings of texts that begin with a base."""
    if not texts:
        return
    is_url = base not in {"", "/"}
    encodings = [False]
    if any("%" in text or (is_url and "?" in text) for text in texts):
        encodings = [True, False]
    bases = [base]
    of_bucket = f"{base}{bucket}/"
    if any(text.startswith(of_bucket) for text in texts):
        bases = [of_bucket, base]
    if (folder := _common_folder(texts, base)) and len(texts) > 1:
        bases.append(folder)
    if base == "/":
        yield Reading("")  # keys may begin with a slash
    for is_encoded in encodings:
        for text_prefix in bases:
            yield Reading(text_prefix, "", is_encoded)
    for is_encoded in encodings:
        for prefix in prefixes:
            yield Reading(bases[0], prefix, is_encoded)


def _common_folder(texts: Sequence[str], base: str) -> str | None:
    """Return the base and the first folder behind it, if all of the texts have the same one."""
    folders = {text[len(base) :].partition("/")[0] if "/" in text[len(base) :] else None for text in texts}
    only = folders.pop() if len(folders) == 1 else None
    return f"{base}{only}/" if only else None


def count_prefixes(keys: Iterable[str]) -> Counter[str]:
    """Return how many of the texts begin with each folder; those in none are counted as the empty one."""
    return Counter(_first_folder(key) for key in keys)


def _first_folder(text: str) -> str:
    base = found[0] if (found := _BASE.match(text)) else "/" if text.startswith("/") else ""
    folder, slash, _ = text[len(base) :].partition("/")
    return f"{base}{folder}/" if slash else base
