"""Doubles of all providers behind one address: the lab's fake, which has and lacks what the table of providers says.

A test's HTTP_PROXY leads there, so that endpoints have the providers' own hosts. What the table leaves out is as at
Amazon's, unless `Manner` says more.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from rowferry.s3.providers import Provider
from rowferry_lab.servers.fake_s3.http import XML, Request, Response
from rowferry_lab.servers.fake_s3.store import Store
from support.s3.deviations import MADE_OF_REQUESTS, WRITES, DeviantApi, Deviations
from support.s3.fake_s3 import DeviantS3, FakeAddress, serve_on_thread

MIB = 1024 * 1024
SLOW_EVERY = 9
"""Of so many requests one is refused as too many, where the table knows a rate."""
Refusal = tuple[int, str, str]
"""Status, code and message."""
NOT_IMPLEMENTED = 501, "NotImplemented", "A header you provided implies functionality that is not implemented"
HALVES = re.compile(rb"(&quot;|\"|<ETag>)([0-9a-f]{16})([0-9a-f]{16})")
"""Of an MD5, which opaque ETags have in the other order."""
TAGS, ACL = frozenset({"x-amz-tagging", "x-amz-tagging-directive"}), frozenset({"x-amz-acl"})
TOO_LARGE = 413, "HTTP", "<html><title>413 Request Entity Too Large</title></html>"
SLOW_DOWN = 503, "SlowDown", "Please reduce your request rate."


@dataclass(frozen=True, slots=True)
class Manner:
    """How a provider refuses, and what else it does that is no fact of the table."""

    tags: Refusal = NOT_IMPLEMENTED
    """What requests for tags get where it has none."""
    acl: Refusal = NOT_IMPLEMENTED
    ignores: frozenset[str] = frozenset()
    """Of the headers of tags and ACLs, those that it ignores where it has none."""
    slow: Refusal = SLOW_DOWN
    hides_region: bool = False
    """Whether the wrong region is refused as a wrong signature."""
    demands: tuple[str, str] = ("", "")
    """A header that requests must have, and the message without it."""
    demanded_of: frozenset[str] = MADE_OF_REQUESTS
    refuses: Mapping[str, Refusal] = field(default_factory=dict[str, Refusal])
    """By operation, or `*` for all."""
    moved_to: str = ""
    """The endpoint that a redirect names in its body."""
    located_at: str = ""
    """The same in Location."""
    opaque_etags: bool = False
    largest_bytes: int | None = None
    """Of a body; a larger one gets 413."""


MANNERS = {
    "r2": Manner(slow=(429, "TooManyRequests", "Reduce your concurrent request rate for the same object.")),
    "b2": Manner(acl=(400, "InvalidArgument", "Unsupported canned acl 'public-read'")),
    "supabase": Manner(tags=(404, "HTTP", '{"message": "Route not found"}'), ignores=TAGS | ACL),
    "garage": Manner(ignores=TAGS | ACL),
    "minio": Manner(ignores=ACL),
    "spaces": Manner(slow=(503, "HTTP", "<html>Service Unavailable</html>")),
}
"""Of those whose table says no more than that they lack something: by reports of their users."""


class Double:
    """One provider."""

    def __init__(self, provider: Provider, store: Store, manner: Manner | None = None) -> None:
        self.provider, self.name = provider, provider.name
        self.manner = manner or MANNERS.get(provider.name, Manner())
        self.host, self.region = example_host(provider)
        honours = WRITES if provider.conditional_put is not False else ()
        kept = MADE_OF_REQUESTS if provider.tags is not False else frozenset[str]()
        self.api = DeviantApi(store, Deviations(if_none_match=frozenset(honours), keeps_tags=kept))
        self._requests = 0

    def answer(self, request: Request) -> Response:
        """Return what the fake answers, as this provider says it."""
        if not self.manner.opaque_etags:
            return self.api.answer(request)
        request.headers = {name: HALVES.sub(rb"\1\3\2", value) for name, value in request.headers.items()}
        request.body = HALVES.sub(rb"\1\3\2", request.body) if request.method == "POST" else request.body
        status, body, headers, length = self.api.answer(request)
        body = HALVES.sub(rb"\1\3\2", bytes(body)) if b"/xml" in headers else body
        return Response(status, body, HALVES.sub(rb"\1\3\2", headers), length)

    def find_refusals(self, request: Request) -> Iterator[Refusal | None]:
        """Yield why a request is refused, by the table and by the manner."""
        yield from self._lack(request)
        yield from self._demand(request)

    def _lack(self, request: Request) -> Iterator[Refusal | None]:
        known, manner, operation = self.provider, self.manner, request.operation
        self._requests += 1
        if known.requests_per_second and self._requests % SLOW_EVERY == 0:
            yield manner.slow
        if known.addressing == "virtual" and not request.headers.get(b"x-bucket-in-host"):
            yield 403, "SecondLevelDomainForbidden", "Please use virtual hosted style to access."
        yield self._refuse_region(request)
        for has, headers, why in ((known.tags, TAGS, manner.tags), (known.acl, ACL, manner.acl)):
            route = "Tagging" if headers is TAGS else "Acl"
            named = any(name.encode() in request.headers for name in headers - manner.ignores)
            if has is False and (named or operation.endswith(route)):
                yield why
        if {"CopyObject": known.copy, "UploadPartCopy": known.copy_parts}.get(operation) is False:
            yield 501, "NotImplemented", f"{operation} is not implemented"
        if known.max_parts and int(request.query.get("partNumber", 1)) > known.max_parts:
            yield 400, "InvalidArgument", f"Part number must be an integer between 1 and {known.max_parts}, inclusive"

    def _demand(self, request: Request) -> Iterator[Refusal | None]:
        manner, operation = self.manner, request.operation
        yield manner.refuses.get(operation) or manner.refuses.get("*")
        if manner.moved_to:
            yield 301, "PermanentRedirect", f"</Message><Endpoint>{manner.moved_to}</Endpoint><Message>"
        if manner.located_at:
            yield 307, "TemporaryRedirect", ""
        header, words = manner.demands
        if header and header.encode() not in request.headers and operation in manner.demanded_of:
            yield 403, "AccessDenied", words

    def _refuse_region(self, request: Request) -> Refusal | None:
        scope = (request.header(b"authorization") or "").partition("Credential=")[2].split("/")
        if not self.region or len(scope) < 3 or scope[2] == self.region:
            return None
        if self.manner.hides_region:
            return 403, "SignatureDoesNotMatch", "The request signature we calculated does not match"
        return 400, "AuthorizationHeaderMalformed", f"the region '{scope[2]}' is wrong; expecting '{self.region}'"


class Doubles(DeviantS3):
    """All of them, told apart by the Host header; any other host is Amazon's without a region."""

    def __init__(self, doubles: Sequence[Double]) -> None:
        super().__init__(doubles[0].api.store, Deviations())
        self.doubles = {double.host: double for double in doubles}

    def begin(self, request: Request) -> Response | None:
        """Read the target as a proxy gets it, and a bucket in the host."""
        parts = urlsplit(request.target)
        host = (request.header(b"host") or "").partition(":")[0]
        bucket, _, rest = host.partition(".")
        path = unquote(parts.path)[1:]
        if rest in self.doubles:
            request.headers |= {b"host": rest.encode(), b"x-bucket-in-host": b"1"}
            path = f"{bucket}/{path}"
        request.bucket, _, request.key = path.partition("/")
        request.operation = request.name_operation()
        double = self.doubles.get((request.header(b"host") or "").partition(":")[0])
        most = None if double is None else double.manner.largest_bytes
        if double is not None and most is not None and (request.read_length() or 0) > most:
            return write_refusal(double, request, TOO_LARGE)
        return super().begin(request)

    def answer(self, request: Request, now: float) -> Response:
        double = self.doubles.get((request.header(b"host") or "").partition(":")[0])
        if double is None:
            return super().answer(request, now)
        why = next(filter(None, double.find_refusals(request)), None)
        return double.answer(request) if why is None else write_refusal(double, request, why)


def write_refusal(double: Double, request: Request, why: Refusal) -> Response:
    """Return an error of S3, or what a proxy says where the code is `HTTP`."""
    status, code, words = why
    body = words if code == "HTTP" else f"<Error><Code>{code}</Code><Message>{words}</Message></Error>"
    headers = f"location: {double.manner.located_at}/\r\n".encode() if double.manner.located_at else b""
    return Response(status, b"" if request.method == "HEAD" else body.encode(), XML + headers)


def example_host(provider: Provider) -> tuple[str, str | None]:
    """Return a host of the provider, one of a test where it has none, and the region to sign for; None: any."""
    pattern = provider.hosts[-1] if provider.hosts else f"s3.{provider.name}.test"
    region = "eu-test-1" if "{region}" in pattern else provider.region
    return re.sub(r"\*", "x", pattern.replace("{region}", region or "")), region


@contextmanager
def running_doubles(*doubles: Double) -> Iterator[FakeAddress]:
    """Yield the address of a proxy that leads to all of them, who share a store."""
    fake = Doubles(doubles)
    with serve_on_thread(fake) as url:
        yield FakeAddress(fake, url)
