"""Servers that compress what they may: nginx and Apache as Debian sets them up, and MinIO, which does so with XML."""

import gzip
from collections.abc import Callable, Iterator

import pytest

from support.entries.checks import check
from support.entries.entry_table import TO
from support.entries.migration import Migration
from support.s3.buckets import Buckets
from support.s3.servers.own import running
from support.s3.servers.proxies import PROXIES

MIB = 1024 * 1024
PAGE = b"<p>A page that compresses well.</p>\n"
PAGES = {"small": 100 * PAGE, "streamed": 8_000 * PAGE, "by parts": 200_000 * PAGE, "packed": gzip.compress(9 * PAGE)}


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in PROXIES])
def behind_proxy(
    request: pytest.FixtureRequest, versitygw_buckets: Buckets, make_migration: Callable[..., Migration]
) -> Iterator[Migration]:
    """A migration whose both sides are reached through a proxy; versitygw checks what is signed."""
    with running(lambda: PROXIES[request.param](versitygw_buckets.server)) as proxy:
        migration = make_migration(versitygw_buckets, versitygw_buckets)
        migration.plan["migration"] |= {"transfer": "stream", "multipart_threshold_bytes": 5 * MIB}
        migration.reach_through(proxy.endpoint_url)
        yield migration


def test_text_behind_a_compressing_proxy_arrives_as_it_is_stored(behind_proxy: Migration) -> None:
    migration = behind_proxy
    for number, (name, body) in enumerate(PAGES.items(), 1):
        encoding = {"ContentEncoding": "gzip"} if name == "packed" else {}
        migration.add(number, f"{name}.html", body, ContentType="text/html", **encoding)
    for number in range(10, 30):  # enough for lists that are compressed
        migration.add(number, f"{number}.png", b"image", ContentType="image/png")
    assert [finding.what for finding in check(migration) if finding.level == "problem"] == []
    assert migration.migrate() == {"migrated": len(PAGES) + 20}
    for name, body in PAGES.items():
        assert migration.production.read(f"{TO}{name}.html") == body
    assert migration.production.head(f"{TO}packed.html")["ContentEncoding"] == "gzip"
    migration.audit()


@pytest.mark.parametrize("behind_proxy", ["nginx"], indirect=True)
def test_an_object_whose_metadata_a_proxy_drops_fails_alone_and_names_the_proxy(behind_proxy: Migration) -> None:
    """nginx drops a header whose name has an underscore, which the signature covers."""
    for number in range(5):
        metadata = {"x_y": "1"} if number == 3 else {}
        behind_proxy.add(number, f"{number}.png", b"image", ContentType="image/png", Metadata=metadata)
    assert behind_proxy.migrate() == {"migrated": 4, "failed": 1}
    _, reason, error = behind_proxy.failure_of(3)
    assert reason == "PutObject production: SignatureDoesNotMatch"
    assert "a proxy before it may drop a header" in error
    behind_proxy.audit(legacy_left=[3])
