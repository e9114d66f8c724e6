"""Strange keys, by what is strange about them: a server that keeps one of a kind otherwise is named by the kind."""

from collections import Counter
from collections.abc import Iterable, Mapping

STRANGE_KEYS: Mapping[str, tuple[str, ...]] = {
    "ordinary names": (
        "plain.jpg", "with space and+plus", "UPPER/lower.JPG", "UPPER/LOWER.jpg", "-dash", "~tilde", "a.b..c",
    ),
    "signs that URLs and shells read": (
        "q'\"<>`|^{}[]&=#;,@:!$*()~", "a?versionId=3", "a?b=c&d", "hash#fragment", "semi;colon=1",
        "$HOME `id` $(id)", "a&amp;b &lt;c&gt;", "colon:/slash", "@at,comma", "*star?",
    ),
    "what looks encoded": ("100%25.txt", "%2F%2e%2E", "%00", "a%20b", "%zz", "%", "+%2B ", "=?utf-8?q?a?="),
    "other scripts and emoji": (
        "nfc-\u00e9", "nfd-e\u0301", "\u00e9" * 100, "emoji-\U0001f600/\U0001f680\U0001f3fd.png",
        "\u65e5\u672c\u8a9e/\uc624\ub298", "\u0645\u0644\u0641-\u202eright-to-left", "Ω≈ç√∫˜µ≤≥÷",
        "\ufeffbyte order mark", "zero\u200bwidth", "no\u00a0break", "\u2028line separator", "\ufffd", "\U0010fffd",
        "ﬃ ligature", "İ ı ß ſ",
    ),
    "spaces at the ends": (" leading", "trailing ", "a/ /b", "\u3000wide"),
    "dots at the ends of names": ("trailing.", ".hidden", "...", "a/.b/c."),
    "control characters": (
        "tab\tin", "del\x7f", "new\nline", "carriage\rreturn", "\x01", "bell\x07esc\x1b[31m", "c1\x85",
    ),
    "backslashes": ("back\\slash", "\\\\server\\share", "C:\\nul"),
    "two slashes": ("a//b", "//lead//twice", "/lead"),
    "a slash at the end": ("trail/", "trail//"),
    "dots as names": ("./a/./b", "a/../b", "a/."),
    "long names": ("n" * 255, "n" * 256, "/".join(["d" * 90] * 10), "\U0001f600" * 230),
    "words of programs": (
        "null", "undefined", "-0", "1e400", "nan", "true", "' or 1=1--", "{{7*7}}", "${jndi:x}", "con", "a.meta",
    ),
}  # fmt: skip


def list_keys() -> list[str]:
    """Return every strange key, each in a folder of its own, so that none is the folder of another."""
    return [f"{number:03}/{key}" for number, key in enumerate(key for keys in STRANGE_KEYS.values() for key in keys)]


def describe_kinds(keys: Iterable[str]) -> str:
    """Return in words how many of the keys there are of each kind."""
    found = set(keys)
    kinds = [kind for kind, each in STRANGE_KEYS.items() for _ in each]  # in the order of the keys
    lost = Counter(kind for key, kind in zip(list_keys(), kinds, strict=True) if key in found)
    return ", ".join(f"{count} of {len(STRANGE_KEYS[kind])} with {kind}" for kind, count in lost.items())
