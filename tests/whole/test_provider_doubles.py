"""Each provider's double through check, migrate and verify: who types what the check says moves every object."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import msgspec
import pytest

from rowferry.s3 import providers
from rowferry.s3.providers import Provider, list_providers
from rowferry_lab.servers.fake_s3.store import Store
from support.entries.migration import Migration
from support.processes.cli import Done
from support.s3.buckets import Buckets, S3Access
from support.s3.doubles import MIB, Double, Manner, running_doubles

pytestmark = pytest.mark.usefixtures("no_pauses")
Make = Callable[[Double, Double], Migration]
Typed = dict[str, str | None]
NO_TAGS: Typed = {"tags": "none"}
NO_ACL: Typed = {"acl": None}
STREAM: Typed = {"transfer": "stream"}
TYPED: dict[str, Typed] = {
    "r2": NO_TAGS | NO_ACL,
    "supabase": NO_TAGS | NO_ACL,
    "garage": NO_TAGS | NO_ACL,
    "b2": NO_ACL,
    "minio": NO_ACL,
}
"""What has to be typed for a provider, from the check of a plan with an ACL; nothing for all others."""
TYPED_WITHIN: dict[str, Typed] = {"gcs": STREAM, "storj": STREAM}
"""The same where the provider has both buckets."""
CURES = {
    r'write (\w+) = "?([\w-]+)"?[^;\n]*? in \[(\w+)\]': lambda found: (found[3], found[1], found[2]),
    r"leave `(\w+)` out of \[(\w+)\]": lambda found: (found[2], found[1], None),
}
"""What a check says is to be typed, as table, key and value of the plan; None: taken out."""


def unknown(**facts: object) -> Provider:
    return Provider("unknown", "", (), **facts)  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class Case:
    """What the check says of a server that no table knows, which has both buckets."""

    manner: Manner
    status: int
    says: str
    typed: Typed = field(default_factory=dict[str, str | None])
    """All that has to be typed; nothing where the cure is not in the plan."""
    facts: Provider = field(default_factory=unknown)


def always(status: int, code: str, words: str = "") -> Manner:
    return Manner(refuses={"*": (status, code, words)})


REGION = unknown(region="eu-west-3")
CASES = {
    "path style": Case(Manner(), 2, "Please use virtual", {"addressing": "virtual"}, unknown(addressing="virtual")),
    "demanded encryption": Case(
        Manner(demands=("x-amz-server-side-encryption", "it demands x-amz-server-side-encryption")),
        2,
        "takes encrypted objects only",
        {"encryption": "AES256"},
    ),
    "demanded payer": Case(
        Manner(demands=("x-amz-request-payer", "requester pays bucket"), demanded_of=frozenset({"GetObject"})),
        2,
        "has to pay for it",
        {"requester_pays": "true"},
    ),
    "region": Case(Manner(), 2, "expecting 'eu-west-3'", {"region": "eu-west-3"}, REGION),
    "region as signature": Case(Manner(hides_region=True), 2, "correct `region`", facts=REGION),
    "no copies": Case(Manner(), 2, "copies no objects by itself", STREAM, unknown(copy=False)),
    "no copies of parts": Case(Manner(), 1, "copies no parts", STREAM, unknown(copy_parts=False)),
    "explicit deny": Case(
        Manner(demands=("x-amz-acl", "with an explicit deny in a resource-based policy")), 2, "or take its Deny out"
    ),
    "301": Case(Manner(moved_to="s3.eu-central-1.wasabisys.com"), 2, "the endpoint s3.eu-central-1.wasabisys.com"),
    "307": Case(Manner(located_at="http://s3.eu-north-1.amazonaws.com"), 2, "http://s3.eu-north-1.amazonaws.com"),
    "TLS": Case(always(403, "AccessDenied", "explicit deny: aws:SecureTransport"), 2, "begins with https://"),
    "firewall": Case(always(403, "HTTP", "<html>Attention Required!</html>"), 2, "firewall or proxy"),
    "down": Case(Manner(refuses={"PutObject": (503, "ServiceUnavailable", "")}), 2, "later"),
    "archived sample": Case(
        Manner(refuses={"CopyObject": (403, "InvalidObjectState", "")}), 1, "restore it (aws s3api restore-object)"
    ),
    "missing looks forbidden": Case(
        Manner(refuses=dict.fromkeys(("ListObjectsV2", "HeadObject"), (403, "AccessDenied", ""))),
        2,
        "give the production credentials s3:ListBucket",
    ),
    "small source of parts": Case(
        Manner(refuses={"UploadPartCopy": (400, "InvalidRequest", "Source object is too small")}), 0, "can be written"
    ),
    "small parts": Case(
        Manner(refuses={"CompleteMultipartUpload": (400, "EntityTooSmall", "")}), 1, "goes in one piece"
    ),
}


@pytest.fixture
def make(make_migration: Callable[..., Migration], monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Make a migration between two doubles: of three small objects, one of them with tags, and of one with parts."""
    with ExitStack() as until:

        def make(legacy: Double, production: Double) -> Migration:
            server = until.enter_context(running_doubles(legacy, production))
            buckets = Buckets(server, S3Access(server), "old", "new")
            for name in ("old", "new"):
                buckets.access.quick.create_bucket(name)
            migration = make_migration(buckets, buckets)
            for side, double in (("legacy", legacy), ("production", production)):
                migration.plan[side]["endpoint_url"] = f"http://{double.host}"
                if double.name in list_providers() and not double.provider.hosts:
                    migration.plan[side]["provider"] = double.name
            migration.plan["migration"]["multipart_threshold_bytes"] = 5 * MIB
            migration.fill(2)
            migration.add(3, "tagged.png", Tagging="a=b")
            migration.add(4, "large.mp4", bytes(range(256)) * (16 * MIB // 256))
            monkeypatch.setenv("http_proxy", server.endpoint_url)
            monkeypatch.setenv("no_proxy", "127.0.0.1")
            return migration

        yield make


def check(migration: Migration) -> Done:
    migration.write_plan()
    return migration.run_here("check")


def type_cures(migration: Migration, said: str) -> Typed:
    """Change the plan as the words say, and return what was changed."""
    cures = [read(found) for pattern, read in CURES.items() for found in re.finditer(pattern, said)]
    for table, key, value in cures:
        migration.plan[table].pop(key, None)
        migration.plan[table] |= {} if value is None else {key: value == "true" or value}
    return {key: value for _, key, value in cures}


def move_all(migration: Migration) -> None:
    """Check, migrate and verify, all with status 0, and look at every object."""
    checked = check(migration)
    assert checked.returncode == 0, checked.stdout
    for command in ("migrate", "verify"):
        done = migration.run_here(command, "-y")
        assert done.returncode == 0, done.stdout + done.stderr
    migration.audit()


@pytest.mark.parametrize("way", ["within", "from Amazon"])
@pytest.mark.parametrize("name", list_providers())
def test_each_provider_takes_all_objects_once_its_cures_are_typed(make: Make, name: str, way: str) -> None:
    store, provider = Store(), list_providers()[name]
    production = Double(provider, store)
    migration = make(production if way == "within" else Double(list_providers()["aws"], store), production)
    if provider.acl is False:
        migration.plan["production"]["acl"] = "public-read"
    typed = type_cures(migration, check(migration).stdout)
    assert typed == TYPED.get(name, {}) | (TYPED_WITHIN.get(name, {}) if way == "within" else {})
    move_all(migration)


@pytest.mark.parametrize("name", CASES)
def test_a_server_that_no_table_knows_is_told_with_what_to_type(make: Make, name: str) -> None:
    case = CASES[name]
    double = Double(case.facts, Store(), case.manner)
    migration = make(double, double)
    checked = check(migration)
    assert checked.returncode == case.status
    assert case.says in checked.stdout
    assert type_cures(migration, checked.stdout) == case.typed
    if case.typed:
        move_all(migration)


def test_no_object_gets_more_parts_than_the_provider_takes(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    few = msgspec.structs.replace(list_providers()["scaleway"], max_parts=2)
    monkeypatch.setattr(providers, "list_providers", lambda: {"scaleway": few})
    double = Double(few, Store())
    move_all(make(double, double))


def test_objects_with_tags_are_counted_where_the_production_server_takes_none(make: Make) -> None:
    store = Store()
    migration = make(Double(list_providers()["aws"], store), Double(unknown(tags=False), store))
    checked = check(migration)
    assert checked.returncode == 1
    assert "! 1 of 4 sampled objects have tags" in checked.stdout
    assert type_cures(migration, checked.stdout) == NO_TAGS
    move_all(migration)


def test_bodies_that_are_too_large_are_counted(make: Make) -> None:
    store = Store()
    migration = make(Double(list_providers()["aws"], store), Double(unknown(), store, Manner(largest_bytes=MIB)))
    for number in range(5, 8):
        migration.add(number, f"photo{number}.jpg", bytes(2 * MIB))
    checked = check(migration)
    assert checked.returncode == 1
    assert "! 4 of 7 sampled objects are larger than this server takes in one piece (2,097,152 bytes" in checked.stdout
    assert "client_max_body_size" in checked.stdout


def test_etags_that_are_no_digest_do_not_stop_copies(make: Make) -> None:
    double = Double(unknown(), Store(), Manner(opaque_etags=True))
    move_all(make(double, double))


def test_etags_that_are_a_false_digest_are_a_problem_where_bodies_are_streamed(make: Make) -> None:
    store = Store()
    checked = check(make(Double(list_providers()["aws"], store), Double(unknown(), store, Manner(opaque_etags=True))))
    assert checked.returncode == 2
    assert "look like the MD5 of the bytes and are not" in checked.stdout


def test_the_largest_body_that_a_proxy_takes_is_named_with_its_failures(make: Make) -> None:
    store = Store()
    production = Double(unknown(), store, Manner(largest_bytes=MIB))
    migration = make(Double(list_providers()["aws"], store), production)
    migration.write_plan()
    assert migration.run_here("migrate", "-y").returncode == 1
    assert "client_max_body_size" in migration.run_here("errors").stdout
