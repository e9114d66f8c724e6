"""Where a side's bucket is served: scheme, host, port and the way its name is written into a URL."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv6Address, ip_address
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from rowferry.errors import UsageError
from rowferry.http.connect import is_link_local
from rowferry.http.proxy import Proxy, find_proxy
from rowferry.http.trust import check_bundle, find_bundle
from rowferry.plan import Side
from rowferry.s3.access.credentials import Credentials, expires, take_snapshot
from rowferry.s3.providers import find_provider

_DEFAULT_PORTS = {"http": 80, "https": 443}

ALLOWED_ENDPOINTS = "ROWFERRY_ALLOWED_ENDPOINTS"
"""Comma separated `scheme://host[:port]`, each with `/bucket` where one bucket is meant; unset: everything that is not
link-local."""
LINK_LOCAL = f"a link-local or metadata address, which is no S3 server; if it is one, name it in {ALLOWED_ENDPOINTS}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The server of one side, taken apart: requests must never reach another host or port than this one."""

    scheme: Literal["http", "https"]
    host: str
    """A name or an address, IPv6 without brackets."""
    port: int
    base_path: str
    """What comes before the bucket in a path: empty, or begins with `/` and does not end with one."""
    virtual_host: bool
    """Whether the bucket is named in the host (`bucket.host`) instead of the path (`host/bucket`)."""
    ca_bundle: str | None = None
    """A file of certificates to trust instead of the system's."""
    proxy: Proxy | None = None
    """The proxy that leads there, where the environment names one."""
    is_named: bool = False
    """Whether the environment allows this very server (ALLOWED_ENDPOINTS), or one bucket of it."""

    @property
    def url(self) -> str:
        """Return the base URL without the bucket."""
        return f"{self.scheme}://{self._authority(self.host)}{self.base_path}"

    def host_header(self, bucket: str) -> str:
        """Return the Host header of requests to `bucket`; the scheme's own port goes unsaid."""
        return self._authority(f"{bucket}.{self.host}" if self.virtual_host else self.host)

    def path_before_key(self, bucket: str) -> str:
        """Return what precedes the encoded key in the request line, ending with `/`."""
        return f"{self.base_path}/" if self.virtual_host else f"{self.base_path}/{bucket}/"

    def _authority(self, host: str) -> str:
        bracketed = f"[{host}]" if ":" in host else host
        return bracketed if self.port == _DEFAULT_PORTS[self.scheme] else f"{bracketed}:{self.port}"


def resolve_endpoint(side: Side) -> Endpoint:
    """Return where requests of `side` go: its endpoint_url, else AWS's own host for its region.

    Endpoints configured for boto3 elsewhere (AWS_ENDPOINT_URL) are ignored: the plan says where objects are.
    Raises UsageError when the URL or the region cannot be used, the file of certificates for an https endpoint, or the
    proxy that the environment names.
    """
    ca_bundle = find_bundle()
    endpoint = _take_apart(side, _split_url(side, side.endpoint_url or _find_aws_url(side)), ca_bundle)
    named = [entry == endpoint.url or entry.startswith(f"{endpoint.url}/") for entry in list_allowed(os.environ)]
    endpoint = replace(endpoint, is_named=any(named))
    if not endpoint.is_named and is_link_local(endpoint.host):
        raise UsageError(f"{side.name}.endpoint_url is {endpoint.url}: {LINK_LOCAL}")
    if endpoint.scheme == "https" and ca_bundle:
        check_bundle(ca_bundle)
    return replace(endpoint, proxy=find_proxy(endpoint.scheme, urlsplit(endpoint.url).netloc))


def _find_aws_url(side: Side) -> str:
    """Return AWS's host for the side's region. Source: AWS General Reference, "Amazon S3 endpoints and quotas"."""
    region = side.region_or_default
    if not re.fullmatch("[a-z0-9-]+", region):
        raise UsageError(f"{side.name}.region {region!r} cannot be used; name one as AWS does")
    return f"https://s3.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"


def _split_url(side: Side, url: str) -> SplitResult:
    """Return the parts of an endpoint's URL; UsageError where something is missing or has no business there."""
    mistake = f"{side.name}.endpoint_url must look like https://host or http://host:port/path"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UsageError(f"{mistake} ({error})") from error
    if "@" in parts.netloc:
        raise UsageError(f"{mistake}, without user name or password: credentials come from the environment")
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.query or parts.fragment or " " in url:
        raise UsageError(f"{mistake}, not {url!r}")
    return parts


def _take_apart(side: Side, parts: SplitResult, ca_bundle: str | None) -> Endpoint:
    scheme: Literal["http", "https"] = "https" if parts.scheme == "https" else "http"
    return Endpoint(
        scheme=scheme,
        host=parts.hostname or "",
        port=parts.port or _DEFAULT_PORTS[scheme],
        base_path=parts.path.rstrip("/"),
        virtual_host=_names_bucket_in_host(side, parts.hostname or ""),
        ca_bundle=ca_bundle,
    )


def _names_bucket_in_host(side: Side, host: str) -> bool:
    """Return whether the bucket goes into the host: as told or demanded, else for AWS if a certificate can match.

    A wildcard certificate covers one label, so a dotted bucket needs the path (Amazon S3 User Guide, "Virtual
    hosting"); so do names that are no host names (upper case, `_`).
    """
    if side.addressing != "auto":
        return side.addressing == "virtual" and not _is_address(host)
    if side.endpoint_url is not None:
        provider = find_provider(side)
        return provider is not None and provider.addressing == "virtual" and not _is_address(host)
    return re.fullmatch("[a-z0-9-]+", side.bucket) is not None


def _is_address(host: str) -> bool:
    try:
        IPv6Address(host)
    except ValueError:
        return host.replace(".", "").isdigit()
    return True


def list_allowed(environ: Mapping[str, str]) -> list[str]:
    """Return the servers and buckets that the environment names."""
    return [entry.strip().rstrip("/") for entry in environ.get(ALLOWED_ENDPOINTS, "").split(",") if entry.strip()]


def refuse_token_in_clear(side: Side, endpoint: Endpoint, credentials: Credentials) -> None:
    """Raise UsageError where a session token would be sent to another host unencrypted, and nobody has said so."""
    if endpoint.scheme == "https" or endpoint.is_named or _is_this_host(endpoint.host):
        return
    if expires(credentials) or take_snapshot(credentials).token:
        words = f"The session token of the {side.name} bucket would be sent to {endpoint.url} unencrypted"
        raise UsageError(f"{words}; use https, or name this server in {ALLOWED_ENDPOINTS}.")


def _is_this_host(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def refuse_foreign_endpoint(side: Side, environ: Mapping[str, str]) -> None:
    """Raise UsageError where the environment does not allow the endpoint and bucket of a side."""
    allowed = list_allowed(environ)
    url = resolve_endpoint(side).url
    if allowed and url not in allowed and f"{url}/{side.bucket}" not in allowed:
        words = f"The {side.name} bucket {side.bucket} at {url} is not among those that {ALLOWED_ENDPOINTS} allows"
        raise UsageError(f"{words}; add it there, or correct the plan.")
