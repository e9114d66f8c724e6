"""The providers of rowferry/s3/providers.toml as tables of a page of docs/."""

from collections.abc import Iterator

from references.words import fill, table
from rowferry.s3.providers import Provider, list_providers

YES = {True: "yes", False: "no", None: ""}
HEAD = ("provider", "`provider`", "hosts", "region", "addressing")
FEATURES = {
    "tags": "tags",
    "acl": "ACLs",
    "copy": "CopyObject",
    "copy_parts": "UploadPartCopy",
    "conditional_put": "If-None-Match of PutObject",
}
NUMBERS = {
    "max_parts": "parts of an object",
    "requests_per_second": "requests per second",
    "egress": "egress of 10⁹ bytes",
    "reads": "1,000 reads",
    "writes": "1,000 writes",
}


def write_page() -> Iterator[str]:
    """Yield the paragraphs of docs/providers.md below those that are written by hand."""
    providers = list_providers().values()
    yield "## Hosts, regions, addressing"
    yield fill("`*` stands for any labels, and `{region}` for the region. No region: `us-east-1`.")
    yield table(HEAD, map(_describe, providers))
    yield "## What they have"
    yield fill("An empty cell: no source says so.")
    yield table(("provider", *FEATURES.values()), (_list_features(each) for each in providers))
    yield "## Limits and prices"
    yield fill(
        "Requests per second are the least that the provider states: of a bucket, of a prefix or of a client. Prices "
        "are in dollars, of the region that the source has, without free amounts and tiers."
    )
    limited = [each for each in providers if any(getattr(each, name) is not None for name in NUMBERS)]
    yield table(("provider", *NUMBERS.values()), (_list_numbers(each) for each in limited))
    yield "## Sources"
    yield table(("provider", "facts", "source", "read"), (row for each in providers for row in _list_sources(each)))


def _describe(provider: Provider) -> tuple[str, ...]:
    hosts = " ".join(f"`{host}`" for host in provider.hosts)
    region = f"`{provider.region}`" if provider.region else "of the host" if "{region}" in hosts else ""
    return provider.title, f"`{provider.name}`", hosts, region, provider.addressing or ""


def _list_features(provider: Provider) -> tuple[str, ...]:
    return provider.title, *(YES[getattr(provider, name)] for name in FEATURES)


def _list_numbers(provider: Provider) -> tuple[str, ...]:
    numbers = (getattr(provider, name) for name in NUMBERS)
    return provider.title, *("" if number is None else f"{number:,g}".replace("e+", "") for number in numbers)


def _list_sources(provider: Provider) -> Iterator[tuple[str, ...]]:
    for source in provider.sources:
        link = (
            f"[{source.url}]({source.url})"
            if source.url.endswith(".md") and "/" not in source.url
            else f"<{source.url}>"
        )
        yield provider.title, ", ".join(f"`{fact}`" for fact in source.facts), link, source.seen
