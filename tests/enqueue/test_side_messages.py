"""What a side refuses, `check` says with its real reason and what to do, in one sentence."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rowferry_enqueue.checks.finding import Finding
from rowferry_lab.servers.server_process import find_free_port
from support.entries.checks import check
from support.entries.migration import Migration
from support.s3.listing_page import page
from support.s3.stand_in import Behaviour, StandIn, answer, error_body, refuse, stop_halfway


@pytest.fixture
def ready(migration: Migration) -> Migration:
    return migration.fill(1)


@contextmanager
def answered_by(migration: Migration, side: str, server: StandIn) -> Iterator[list[Finding]]:
    """Yield the problems of a check whose side answers as told: a HEAD, which has no body, then a GET and all else."""
    with server:
        migration.plan[side]["endpoint_url"] = server.endpoint_url
        yield [finding for finding in check(migration) if finding.level == "problem"]


CODES = {
    "ExpiredToken": (400, "renew the {side} credentials"),
    "InvalidAccessKeyId": (403, "ROWFERRY_{SIDE}_ACCESS_KEY_ID"),
    "XAdminUserNotFound": (404, "ROWFERRY_{SIDE}_ACCESS_KEY_ID"),
    "SignatureDoesNotMatch": (403, "correct ROWFERRY_{SIDE}_SECRET_ACCESS_KEY"),
    "RequestTimeTooSkewed": (403, "correct the clock of this host"),
    "AuthorizationHeaderMalformed": (400, "correct `region` of [{side}]"),
    "PermanentRedirect": (301, "correct `endpoint_url` or `region` of [{side}]"),
    "AccessDenied": (403, "give the {side} credentials s3:ListBucket"),
    "QuotaExceeded": (403, "raise the quota"),
}


@pytest.mark.by_day("legacy")
@pytest.mark.parametrize("side", ["legacy", "production"])
def test_a_refusal_without_a_body_is_found_out(ready: Migration, side: str, subtests: pytest.Subtests) -> None:
    for code, (status, remedy) in CODES.items():
        with subtests.test(code), answered_by(ready, side, StandIn(answer(status), refuse(status, code))) as found:
            (problem,) = [one for one in found if f"the {side} bucket" in one.what]
            assert code in problem.what
            assert remedy.format(side=side, SIDE=side.upper()) in problem.remedy
            assert ("s3:" in problem.remedy) == (code == "AccessDenied")
            assert "by hand" not in problem.what + problem.remedy
            assert "HTTP 4" not in problem.what


WORDS = {
    "SecondLevelDomainForbidden": (403, "use virtual hosted style", {}, 'addressing = "virtual"'),
    "AccessDenied": (403, "denied by aws:SecureTransport", {}, "begins with https://"),
    "Unauthorized": (401, "no such account", {}, "jurisdiction in endpoint_url of [legacy]"),
    "TemporaryRedirect": (307, "go on", {"Location": "http://s3.eu-north-1.example.com/a"}, "endpoint_url of [legacy]"),
}
"""Codes, with what a server says beside them, its headers, and what to type."""


def test_what_a_server_says_beside_its_code_is_heeded(ready: Migration, subtests: pytest.Subtests) -> None:
    for code, (status, words, headers, typed) in WORDS.items():
        said = answer(status, error_body(code, words), **headers)
        with subtests.test(code), answered_by(ready, "legacy", StandIn(answer(status), said)) as found:
            assert typed in found[0].remedy
            assert headers.get("Location", "")[:28] in f"{found[0].what} {found[0].remedy}"


def test_a_server_that_is_no_s3_is_called_so_and_told_from_a_missing_bucket_and_a_proxy(ready: Migration) -> None:
    for welcome in (answer(404, b"<html>nobody</html>"), answer(200, b"<html>welcome</html>"), answer(404)):
        with answered_by(ready, "legacy", StandIn(answer(200), welcome)) as found:
            assert "does not answer as S3 does" in found[0].what
            assert "correct `endpoint_url` of [legacy]" in found[0].remedy
    missing = StandIn(answer(404), answer(404, error_body("NoSuchBucket")))
    with answered_by(ready, "legacy", missing) as found:
        assert found[0].what.startswith("there is no legacy bucket")
    body = gzip.compress(page(["image/u1/me.png"]).body)
    packed = answer(200, body, Content_Encoding="gzip", Server="Apache/2.4.62 (Debian)")
    with answered_by(ready, "legacy", StandIn(answer(200), packed)) as found:
        assert "lists comes compressed (gzip)" in found[0].what
        assert "the proxy before it (Apache/2.4.62 (Debian)) compress nothing: nginx `gzip off`" in found[0].remedy


def test_a_server_that_breaks_off_ranges_is_not_at_another_address(ready: Migration) -> None:
    """As s3rver does: it lists, and its other answers are whole."""

    def judge(head: str) -> Behaviour:
        if "range: bytes" in head.lower():
            return stop_halfway
        if "list-type" in head:
            return answer(200, page(["image/u1/me.png"]).body)
        return answer(200, b"" if head.startswith("HEAD") else b"bytes", ETag='"e"', x_amz_request_id="1")

    with answered_by(ready, "legacy", StandIn().judging(judge)) as (found, *_):
        assert "cannot be read: ConnectionLost" in found.what
        assert found.remedy.endswith("before it, why GetObject with a range ends so")
        assert "endpoint_url" not in found.remedy


def test_an_endpoint_that_names_the_bucket_is_written_without_it(ready: Migration) -> None:
    """Behind it stands the bucket once more, which a server takes for a key."""
    with StandIn(answer(404), answer(404, error_body("NoSuchKey"))) as server:
        url = server.endpoint_url
        ready.plan["legacy"]["endpoint_url"] = f"{url}/{ready.legacy.bucket}/"
        found = [finding for finding in check(ready) if finding.level == "problem"]
    assert "seems to name the bucket" in found[0].what
    assert found[0].remedy == f"write endpoint_url = {url!r}"


@pytest.mark.soak
def test_https_to_an_http_port_is_told(ready: Migration) -> None:
    ready.plan["production"]["endpoint_url"] = ready.production.endpoint_url.replace("http:", "https:")
    found = [finding for finding in check(ready) if finding.level == "problem"]
    assert "does not speak https: write an endpoint_url in [production] that begins with http://" in found[0].remedy


def test_an_address_without_a_server_is_told(ready: Migration) -> None:
    ready.plan["legacy"]["endpoint_url"] = f"http://127.0.0.1:{find_free_port()}"
    found = [finding for finding in check(ready) if finding.level == "problem"]
    assert "let this host connect to 127.0.0.1:" in found[0].remedy
