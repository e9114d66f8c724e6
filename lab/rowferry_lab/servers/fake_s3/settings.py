"""How the fake S3 server behaves: what it lets through, how long it takes, how fast its link is.

Each class but the first is a group of settings with the same names as options (`--writes-per-second=300`,
`--latency-sigma=0.6`) and as parameters of a control request (`PUT /_limits?writes_per_second=300`).
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

Settings = TypeVar("Settings")
WRITES = ("PutObject", "CopyObject", "CompleteMultipartUpload")


@dataclass(frozen=True, slots=True)
class Deviations:
    """What the server does otherwise than Amazon S3; the defaults are Amazon's own behaviour."""

    if_none_match: frozenset[str] = frozenset(WRITES)
    """The operations that honour If-None-Match."""
    looks_early: bool = False
    """Whether If-None-Match is held against what stands there before the body is read, and not after it."""
    if_match: frozenset[str] = frozenset({"PutObject", "CompleteMultipartUpload"})
    """The operations that honour If-Match when they write."""
    read_if_match: bool = True
    """Whether a GET or HEAD honours If-Match."""
    source_if_match: bool = True
    """Whether x-amz-copy-source-if-match is honoured."""
    tagging_count: bool = True
    """Whether HEAD and GET return x-amz-tagging-count."""
    keeps_tags: frozenset[str] = frozenset({"PutObject", "CopyObject", "CreateMultipartUpload"})
    """The operations that keep the tags of the object."""
    tagging_directive: bool = True
    """Whether CopyObject heeds x-amz-tagging-directive; without, a copy has the tags of its source."""
    removes_tags: bool = True
    """Whether PutObjectTagging takes tags away."""
    knows_tags: bool = True
    """Whether GetObjectTagging and PutObjectTagging are known."""
    puts_tags: bool = True
    """Whether PutObjectTagging has an effect."""
    keeps_acl: frozenset[str] = frozenset({"PutObject", "CopyObject", "CreateMultipartUpload"})
    """The operations that keep the ACL given with them."""
    puts_acl: bool = True
    """Whether PutObjectAcl has an effect."""
    knows_acl: bool = True
    """Whether GetObjectAcl and PutObjectAcl are known; without, they are GetObject and PutObject."""
    encrypts: bool = True
    """Whether x-amz-server-side-encryption has an effect."""
    completion_etag: bool = True
    """Whether the result of CompleteMultipartUpload has an ETag."""
    lists_parts: bool = True
    """Whether ListParts is known."""
    keeps_cut_parts: bool = False
    """Whether a part whose connection ends in its body is kept, at its full size, with zeros in place of the rest."""
    largest_copy_bytes: int = 5 * 1024**3
    """CopyObject refuses a larger object, as EntityTooLarge."""
    checks_md5: bool = True
    """Whether a body with another MD5 than Content-MD5 says is refused."""
    md5_of_parts: bool = True
    """Whether the ETag of a part is its MD5."""
    head_length: bool = True
    """Whether the response to HeadObject has a Content-Length."""
    gzips_xml: bool = False
    """Whether XML of more than 1,000 bytes comes compressed where that is asked for, as MinIO sends it."""
    login_page_for: str | None = None
    """The operation that does nothing and returns 200 with a web page."""


@dataclass(frozen=True, slots=True)
class Latency:
    """How long a response takes; seconds each. The longest is 10 s."""

    seconds: float = 0.0
    """The median."""
    sigma: float = 0.0
    """Of a lognormal distribution; 0: all responses take as long."""
    instant_share: float = 0.0
    """The share of the responses that come at once, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Which requests are answered 503 SlowDown; each bucket has bounds of its own. 0: no bound."""

    writes_per_second: float = 0.0
    reads_per_second: float = 0.0
    burst_seconds: float = 0.1
    """A token bucket holds what it lets through in so many seconds, one token at least."""
    counts_refused: bool = False
    """Whether a refused request takes a token as well; the bucket owes what it lets through in a second at the most."""
    windows: bool = False
    """Instead of a token bucket: so many requests in each second of the clock."""
    refused_share: float = 0.0
    """The share of all requests that is refused at random besides, from 0 to 1."""
    retry_after: int = 0
    """The seconds in the header Retry-After of a refusal; 0: no such header."""


@dataclass(frozen=True, slots=True)
class Link:
    """Bytes a second, the same in both directions. 0: no bound."""

    connection_bytes_per_second: float = 0.0
    total_bytes_per_second: float = 0.0


GROUPS: Mapping[str, type[Any]] = {"latency": Latency, "limits": Limits, "link": Link}
"""By the name of the control request."""
PREFIXES = {"latency": "latency_", "limits": "", "link": "link_"}
"""Before the names of the fields, as options."""


def read_query(kind: type[Settings], query: Mapping[str, str]) -> Settings:
    """Return settings from the parameters of a control request. Raises ValueError for a value of another type."""
    values = {name: _cast(default, query[name]) for name, default in _defaults(kind).items() if name in query}
    return kind(**values)


def add_options(parser: ArgumentParser) -> None:
    """Add an option for each setting."""
    for group, kind in GROUPS.items():
        for name, default in _defaults(kind).items():
            option = "--" + (PREFIXES[group] + name).replace("_", "-")
            parser.add_argument(option, default=str(default), metavar=type(default).__name__.upper())


def read_options(options: Namespace) -> dict[str, Any]:
    """Return the settings of each group. Raises ValueError for a value of another type."""
    return {
        group: read_query(kind, {name: getattr(options, PREFIXES[group] + name) for name in _defaults(kind)})
        for group, kind in GROUPS.items()
    }


def _defaults(kind: type[Any]) -> dict[str, Any]:
    return {each.name: each.default for each in fields(kind)}


def _cast(default: Any, value: str) -> Any:
    return value.lower() in {"1", "true"} if isinstance(default, bool) else type(default)(value)
