"""What describes a probe object, and how much of it came back."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import quote

HEADERS = {
    "Content-Type": "text/x-rowferry",
    "Content-Encoding": "gzip",
    "Content-Language": "en",
    "Content-Disposition": 'attachment; filename="probe.txt"',
    "Cache-Control": "max-age=86400",
    "Expires": "Thu, 01 Jan 2099 00:00:00 GMT",
}
METADATA = {
    "x-amz-meta-rowferry": "probe",
    "x-amz-meta-with-hyphen": "hyphen",
    "x-amz-meta-with_underscore": "underscore",
}
TAGGING = "x-amz-tagging"
TAGS = {"rowferry": "check", "with space": "a+b=c"}


def find_lost(given: Mapping[str, str], came: Mapping[str, str]) -> list[str]:
    """Return the names of metadata and content headers that came back otherwise than they were given, or not."""
    return [
        name.removeprefix("x-amz-meta-") if name in METADATA else name
        for name, value in given.items()
        if name != TAGGING and not _is_same(name, value, came.get(name.lower(), ""))
    ]


def _is_same(name: str, written: str, came: str) -> bool:
    if name == "Expires":
        try:
            return parsedate_to_datetime(came) == parsedate_to_datetime(written)
        except ValueError:
            return False
    return came == written or (name == "Content-Type" and came.startswith(f"{written};"))


def encode_tags(tags: Mapping[str, str]) -> str:
    """Return tags as `x-amz-tagging` wants them."""
    return "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in tags.items())
