"""What is sent to an https endpoint is sent to no other server; an untrusted certificate ends the connection first."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from rowferry.errors import ServerNotTrusted
from support.entries.migration import Migration
from support.s3.buckets import Buckets, S3Access, find_versitygw, remove_bucket
from support.s3.clients import HEAD, ask, opened, side_of
from support.s3.stand_in import StandIn, answer
from support.s3.tls import Authority, TlsVersityServer, serving_context


@dataclass(frozen=True)
class Trust:
    """Two authorities, and certificates of the first: for this host, and for another."""

    bundle: Path
    strangers: Path
    server: TlsVersityServer | None
    right: Any
    elsewhere: Any


@pytest.fixture(scope="module")
def trust() -> Iterator[Trust]:
    with TemporaryDirectory() as name, ExitStack() as until:
        authority, stranger = Authority(Path(name), "authority"), Authority(Path(name), "stranger")
        right, elsewhere = authority.sign("server"), authority.sign("elsewhere", address="192.0.2.1")
        program = find_versitygw()
        server = until.enter_context(TlsVersityServer(program, right, authority.bundle)) if program else None
        yield Trust(authority.bundle, stranger.bundle, server, serving_context(right), serving_context(elsewhere))


@pytest.fixture
def buckets(trust: Trust) -> Iterator[Buckets]:
    """Two buckets of a versitygw that speaks https only."""
    if trust.server is None:
        pytest.skip("versitygw is not here: `make servers` builds it where `go` is installed")
    with closing(S3Access(trust.server, trust.bundle)) as access:
        found = Buckets(trust.server, access, "tls-legacy", "tls-production")
        for bucket in (found.legacy, found.production):
            access.quick.create_bucket(bucket)
        yield found
        for bucket in (found.legacy, found.production):
            remove_bucket(access.client, bucket)


@pytest.fixture
def secure(buckets: Buckets, make_migration: Callable[..., Migration]) -> Migration:
    migration = make_migration(buckets, buckets)
    return migration.fill(20)


def test_a_whole_migration_over_https_trusts_the_bundle(secure: Migration, trust: Trust) -> None:
    bundle = {"AWS_CA_BUNDLE": str(trust.bundle)}
    secure.write_plan()
    assert secure.plan["legacy"]["endpoint_url"].startswith("https://127.0.0.1:")
    for arguments in (["check"], ["enqueue", "--yes", "--batch-size", "5"], ["worker", "--until-empty"]):
        done = secure.run(*arguments, **bundle)
        assert done.returncode == 0, done.stdout + done.stderr
    assert secure.counts() == {"migrated": 20}
    assert secure.run_here("verify", "--yes", "--log-file", "verify.log", **bundle).returncode == 0
    secure.audit()


def refused(migration: Migration, bundle: str, *words: str) -> None:
    """Hold the last words of commands that cannot trust the server."""
    for arguments in (["status"], ["worker", "--until-empty", "--log-format=text"]):
        done = migration.run(*arguments, **({"AWS_CA_BUNDLE": bundle} if bundle else {}))
        last = done.stderr.splitlines()[-1]
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
        assert last.startswith("rowferry: ")
        assert all(word in last for word in words), last


def test_a_server_that_cannot_be_trusted_is_refused_in_one_sentence(
    secure: Migration, trust: Trust, tmp_path: Path
) -> None:
    untrusted = "the certificate of the server is not trusted"
    secure.write_plan().enqueue(batch_size=5)
    (tmp_path / "none.pem").write_text("no certificate")
    for bundle in ("", str(trust.strangers)):
        refused(secure, bundle, untrusted, "AWS_CA_BUNDLE")
        done = secure.run("check", **({"AWS_CA_BUNDLE": bundle} if bundle else {}))
        assert (done.returncode, untrusted in done.stdout) == (2, True)
    for bundle in (str(tmp_path / "none.pem"), str(tmp_path / "nowhere.pem")):
        refused(secure, bundle, bundle)
    assert secure.counts() == {}
    secure.audit(legacy_left=range(1, 21))


@pytest.mark.parametrize("whose", ["nobody's bundle", "strangers", "another host"])
def test_not_a_word_is_said_to_a_server_that_is_not_trusted(
    whose: str, trust: Trust, monkeypatch: pytest.MonkeyPatch
) -> None:
    if whose != "nobody's bundle":
        monkeypatch.setenv("AWS_CA_BUNDLE", str(trust.bundle if whose == "another host" else trust.strangers))
    context = trust.elsewhere if whose == "another host" else trust.right
    with StandIn(answer(200), tls=context) as server, opened(side_of(server)) as client:
        error = ask(client, HEAD).error
        assert isinstance(error, ServerNotTrusted)
        assert error.code == "CertificateNotTrusted"
    assert server.requests == []
