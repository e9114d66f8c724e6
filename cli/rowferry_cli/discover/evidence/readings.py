"""How the text of a column may name an object: as the key itself, as a URL, encoded, or behind a prefix. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from rowferry.keys import MAX_KEY_BYTES
from rowferry.plan import Side

MAX_BASES = 6
"""URL bases of one column that are looked at: those that name the legacy bucket or its server, then the commonest."""

MAX_BEGINS, LEAST_TEXTS = 3, 3
"""What may stand before keys at the end of texts: so many, each of so many texts at least."""

_SCHEME = re.compile(r"(?!https?:|ftp:)[a-z][a-z0-9+.-]+:(?:/{1,3}|(?=[^\s/:]+/))", re.IGNORECASE)
"""Of no web server: what follows may be a bucket, or the key itself behind the name of a storage."""
_SIGNED = re.compile(r"[?&](X-Amz-Signature|X-Goog-Signature|Signature)=", re.IGNORECASE)
_OF_LIKE = re.compile(r"[%_\\]")
_BASE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//[^/\s?#]+/", re.IGNORECASE)
_UNFIT = re.compile(r"[\x00-\x1f\x7f]")


FindBegin = Callable[[str], str | None]


def find_no_begin(_text: str) -> None:
    """Know no key."""


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
    def is_url(self) -> bool:
        """Return whether the text is a URL."""
        return _BASE.match(self.text_prefix) is not None

    @property
    def is_scheme(self) -> bool:
        """Return whether what stands before the key is a scheme alone, which may be the name of a storage."""
        return _SCHEME.fullmatch(self.text_prefix) is not None


def may_be_key(text: str) -> bool:
    """Return whether a text could name an object: some keys are short or have blanks, none breaks lines."""
    if not text or len(text) > 4096 or _UNFIT.search(text):
        return False
    if "/" in text or re.search(r"\.\w{1,8}(?:[?#].*)?$", text):
        return text.count(" ") < 12
    return len(text) >= 8 and " " not in text and not re.fullmatch(r"[\d.:+\-]+|[^@\s]+@[^@\s]+\.\w+", text)


def suggest_readings(
    texts: Iterable[str], side: Side, prefixes: Sequence[str], find_begin: FindBegin = find_no_begin
) -> list[Reading]:
    """Return the readings that fit the form of some texts, the likelier first.

    `prefixes`: folders of the bucket; `find_begin` returns what stands before the key that a text ends with.
    """
    listed = list(texts)
    bases = Counter(base for text in listed if (base := _split_base(text)))
    ours = {base for text in listed if (base := _split_base(text)) and mentions_bucket(text, side)}
    found: list[Reading] = []
    for base in sorted(bases, key=lambda one: (one not in ours, -bases[one]))[:MAX_BASES]:
        of_base = [text for text in listed if text.startswith(base)]
        found += _suggest(base, of_base, side.bucket, prefixes)
    plain = [text for text in listed if not _split_base(text)]
    if plain:
        found += _suggest("", [text for text in plain if not text.startswith("/")], side.bucket, prefixes)
        found += _suggest("/", [text for text in plain if text.startswith("/")], side.bucket, prefixes)
    begins = Counter(begin for text in listed if (begin := find_begin(text)))
    found += [Reading(begin) for begin, texts_of in begins.most_common(MAX_BEGINS) if texts_of >= LEAST_TEXTS]
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


def _split_base(text: str) -> str:
    """Return the scheme and host of a URL, or the scheme alone where that is of no web server; empty: it is no URL."""
    found = _SCHEME.match(text) or _BASE.match(text)
    return found[0] if found else ""


def mentions_bucket(text: str, side: Side) -> bool:
    """Return whether a URL names the bucket or its server."""
    base = _split_base(text)
    return f"/{side.bucket}/" in text or names_bucket(base, side)


def write_patterns(side: Side) -> list[str]:
    """Return patterns, as of LIKE, of texts that may name the bucket or its server, in documents as well."""
    names = [side.bucket + end for end in ("/", "\\/", ".")]
    names += [host] if (host := urlsplit(side.endpoint_url or "").hostname) else []
    return ["%/" + _OF_LIKE.sub(r"\\\g<0>", name) + "%" for name in names]


def names_bucket(base: str, side: Side) -> bool:
    """Return whether the beginning of a URL names the bucket or its server."""
    try:
        parts = urlsplit(base if "://" in base else f"s3:{base}")
    except ValueError:  # no URL, though it begins like one
        return False
    server = urlsplit(side.endpoint_url or "https://amazonaws.com").hostname or ""
    host = parts.hostname or ""
    in_path = side.bucket in parts.path.split("/")
    return host == side.bucket or host.startswith(f"{side.bucket}.") or in_path or host.endswith(server)


def is_signed(text: str) -> bool:
    """Return whether a URL is presigned: valid for one bucket, and for a time."""
    return _SIGNED.search(text) is not None


def first_folder(text: str) -> str:
    """Return how a text begins, up to its first folder; of a text in none, its scheme and host or nothing."""
    base = _split_base(text) or ("/" if text.startswith("/") else "")
    folder, slash, _ = text[len(base) :].partition("/")
    return f"{base}{folder}/" if slash else base
