"""What is said of an object besides its bytes, as the checks say it, and what of it an object has not got."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

PROPERTIES: Mapping[str, Any] = {
    "ContentType": "image/x-odd",
    "CacheControl": "max-age=3600, must-revalidate",
    "ContentDisposition": 'attachment; filename="a b.png"',
    "ContentLanguage": "de, en",
    "ContentEncoding": "x-odd",
    "Expires": "Thu, 01 Jan 2032 00:00:00 GMT",
    "Metadata": {"author": "me", "with-dash": "a=b; c", "x-y_z": "1"},
}
WITHOUT_UNDERSCORE: Mapping[str, Any] = {
    **PROPERTIES,
    "Metadata": {name: value for name, value in PROPERTIES["Metadata"].items() if "_" not in name},
}
"""For what is behind a proxy that drops headers with an underscore, as nginx does: the signature covers them."""
EXPECTED_HEADERS = {
    re.sub("(?<=[a-z])(?=[A-Z])", "-", name).lower(): value for name, value in PROPERTIES.items() if name != "Metadata"
} | {f"x-amz-meta-{name}": value for name, value in PROPERTIES["Metadata"].items()}
"""The same as a HEAD tells them."""
TAGS = {"kind": "cat + dog", "a/b": "1=1:2@x_y-z."}


def encode_tags() -> str:
    """Return the tags as `x-amz-tagging` has them, with %20 for a space: not each server takes a + for one."""
    return urlencode(TAGS, quote_via=quote)


def compare_properties(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the headers of the properties that an object, by its HEAD, has not got or has got otherwise."""
    told = found["ResponseMetadata"]["HTTPHeaders"]
    for name, value in EXPECTED_HEADERS.items():
        if told.get(name) != value:
            yield name
