"""What is known of a side's provider before anything is tried: providers.toml, by name or by the endpoint's host."""

import re
from functools import cache
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from rowferry.plan.sides import Side
from rowferry.s3.data_files import read_rows


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where facts were read, and on which day."""

    url: str
    seen: str
    facts: tuple[str, ...]


class Provider(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One [[provider]], whose file says what each fact means; None: not known."""

    name: str
    title: str
    sources: tuple[Source, ...]
    hosts: tuple[str, ...] = ()
    region: str | None = None
    addressing: Literal["virtual"] | None = None
    tags: bool | None = None
    acl: bool | None = None
    copy: bool | None = None
    copy_parts: bool | None = None
    conditional_put: bool | None = None
    max_parts: int | None = None
    requests_per_second: int | None = None
    egress: float | None = None
    reads: float | None = None
    writes: float | None = None


@cache
def list_providers() -> dict[str, Provider]:
    """Return all providers by name. Raises msgspec.ValidationError where the file is not as it should be."""
    return {provider.name: provider for provider in read_rows("providers.toml", "provider", Provider)}


def find_provider(side: Side) -> Provider | None:
    """Return the provider that the plan names, else the one of the endpoint's host; None where neither tells."""
    if side.provider is not None or side.endpoint_url is None:
        return list_providers()[side.provider or "aws"]
    host = _read_host(side)
    return next((each for each in list_providers().values() if _match(each, host)), None) if host else None


def find_region(side: Side) -> str:
    """Return the region to sign for: the plan's, else that of the host or of the provider, else us-east-1."""
    provider = find_provider(side) if side.region is None and side.endpoint_url is not None else None
    if provider is None:
        return side.region_or_default
    found = _match(provider, _read_host(side))
    return (found.groupdict().get("region") if found else None) or provider.region or side.region_or_default


def _read_host(side: Side) -> str:
    try:
        host = urlsplit(side.endpoint_url or "").hostname or ""
    except ValueError:  # refused with its reason where the endpoint is taken apart
        return ""
    return host if re.search(r"\.[a-z]+$", host) else ""


def _match(provider: Provider, host: str) -> re.Match[str] | None:
    """Return how a host is one of the provider's."""
    return next((found for pattern in provider.hosts if (found := _compile(pattern).fullmatch(host))), None)


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    escaped = re.escape(pattern).replace(r"\*", r"[a-z0-9.-]+")
    return re.compile(escaped.replace(re.escape("{region}"), r"(?P<region>[a-z0-9-]+)"))
