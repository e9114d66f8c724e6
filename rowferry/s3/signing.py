"""AWS Signature Version 4, as S3 wants it: what makes a request ours. No I/O here.

Source: AWS General Reference, "Create a signed AWS API request"; Amazon S3 API Reference, "Authenticating Requests
(AWS Signature Version 4)". botocore's signer is what the tests hold this one against; it costs several times as much.
"""

import hashlib
import hmac
import re
import time
from functools import lru_cache
from typing import NamedTuple

from rowferry.s3.credentials import Frozen

Headers = list[tuple[str, str]]

SIGNED_BODY_BYTES = 64 * 1024
"""Larger bodies are not hashed a second time where their Content-MD5 is signed."""
UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
_EMPTY_DIGEST = hashlib.sha256().hexdigest()
_ALGORITHM = "AWS4-HMAC-SHA256"


class _Moment(NamedTuple):
    """What all signatures of one second and one pair of keys have in common."""

    second: int
    credentials: Frozen
    stamp: str
    key: bytes
    to_sign: str
    """What is signed begins so."""
    credential: str
    """The Authorization header begins so."""

    def __repr__(self) -> str:
        return "_Moment(...)"


class Signer:
    """Signs the requests to one region; any thread may use it."""

    def __init__(self, region: str) -> None:
        """Take the region's name as the server knows it."""
        self._region = region
        self._moment: _Moment | None = None
        self.clock_offset = 0.0
        """The seconds by which the server's clock is ahead of this host's, as far as that was found to matter."""

    def sign(self, credentials: Frozen, method: str, target: str, headers: Headers, body: bytes = b"") -> Headers:
        """Return `headers` and those that sign them; `target` is the percent-encoded path and query as they are sent.

        Every header that is given is signed, `Host` among them: what must not be signed is added later.
        """
        moment = self._now(credentials)
        payload = _digest_body(body, headers)
        headers = [*headers, ("x-amz-content-sha256", payload), ("x-amz-date", moment.stamp)]
        if credentials.token:
            headers.append(("x-amz-security-token", credentials.token))
        order, names = _put_in_order(tuple([name for name, _ in headers]))
        lines = [f"{name}:{_trim(headers[index][1])}" for name, index in order]
        path, _, query = target.partition("?")
        query = _sort_query(query) if query else ""
        request = "\n".join([method, path, query, *lines, "", names, payload])
        digest = hashlib.sha256(request.encode(errors="surrogateescape")).hexdigest()
        signature = hmac.digest(moment.key, f"{moment.to_sign}{digest}".encode(), "sha256").hex()
        headers.append(("Authorization", f"{moment.credential}, SignedHeaders={names}, Signature={signature}"))
        return headers

    def _now(self, credentials: Frozen) -> _Moment:
        second = int(time.time() + self.clock_offset)
        moment = self._moment
        if moment is None or moment.second != second or moment.credentials is not credentials:
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
            day = stamp[:8]
            scope = f"{day}/{self._region}/s3/aws4_request"
            self._moment = moment = _Moment(
                second,
                credentials,
                stamp,
                _derive_key(credentials.secret_key, day, self._region),
                to_sign=f"{_ALGORITHM}\n{stamp}\n{scope}\n",
                credential=f"{_ALGORITHM} Credential={credentials.access_key}/{scope}",
            )
        return moment


@lru_cache(maxsize=256)
def _put_in_order(names: tuple[str, ...]) -> tuple[list[tuple[str, int]], str]:
    """Return names in lower case in the order in which they are signed, each with its place, and all in one string."""
    order = sorted((name.lower(), index) for index, name in enumerate(names))
    return order, ";".join([name for name, _ in order])


def _derive_key(secret_key: str, day: str, region: str) -> bytes:
    key = f"AWS4{secret_key}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def _digest_body(body: bytes, headers: Headers) -> str:
    if not body:
        return _EMPTY_DIGEST
    if len(body) > SIGNED_BODY_BYTES and any(name == "Content-MD5" for name, _ in headers):
        return UNSIGNED_PAYLOAD
    return hashlib.sha256(body).hexdigest()


def _sort_query(query: str) -> str:
    """Return the query's encoded `name=value` pairs in the order of their names."""
    return "&".join(sorted(query.split("&"), key=lambda pair: pair.split("=", 1)))


def _trim(value: str) -> str:
    """Return a header's value without spaces at its ends, and with one for several within."""
    value = value.strip(" \t")
    return re.sub(" +", " ", value) if "  " in value else value
