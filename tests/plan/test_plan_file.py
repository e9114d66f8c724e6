"""A plan file says exactly what it can mean; every mistake in it gets one sentence."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowferry.errors import PlanError
from rowferry.plan import (
    DatabaseLimits,
    Entries,
    LegacySide,
    MigrationSettings,
    ObjectPrefix,
    Plan,
    ProductionSide,
    Side,
)
from rowferry.plan_file import parse_plan, plan_document, read_plan
from rowferry.sql_condition import find_fault

pytestmark = pytest.mark.pythons

MINIMAL = """
[migration]
name = "avatars"
[legacy]
bucket = "old"
[production]
bucket = "new"
[[entries]]
table = "public.avatars"
id = "id"
key = "path"
from = "image/"
to = "avatar/"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rowferry.toml"


def mistake_in(path: Path, text: str) -> str:
    """Return the sentence about a plan, without the words that name its file."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PlanError) as caught:
        read_plan(path)
    sentence = str(caught.value)
    assert str(path) in sentence
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert not sentence.endswith("..")
    return sentence.removeprefix(f"In the plan {path}, ")


def test_what_is_left_out_has_a_default(path: Path) -> None:
    path.write_text(MINIMAL, encoding="utf-8")
    assert read_plan(path) == Plan(
        migration=MigrationSettings("avatars", "auto", 5, False, None),
        legacy_side=LegacySide("old", None, None, None, "auto"),
        production_side=ProductionSide("new", None, None, None, "auto"),
        entries=(Entries("public.avatars", "id", "path", "image/", "avatar/", None),),
        database=DatabaseLimits(None, None),
    )
    where = r'path ~ "\u0000|\\\u0000"'  # a backslash before u0000, and no NUL
    path.write_text(f"{MINIMAL}where = '{where}'", encoding="utf-8")
    assert read_plan(path).entries[0].where == where


def test_objects_need_no_table(path: Path) -> None:
    path.write_text(MINIMAL.partition("[[")[0] + '[[objects]]\nprefix = ""\n[[objects]]\nprefix = "a/"\nname = "b"')
    plan = read_plan(path)
    assert (plan.entries, plan.labels) == ((), ["*", "b"])
    assert [objects.production_object_prefix for objects in plan.objects] == ["", "a/"]


def replaced(old: str, new: str) -> str:
    assert old in MINIMAL
    return MINIMAL.replace(old, new)


NOTHING_TO_MOVE = "there is no [[entries]]: name at least one table, or a prefix of keys by [[objects]]."
OBJECTS = MINIMAL + '[[objects]]\nprefix = "variants/"\n'
ONE_BUCKET = OBJECTS.replace('"new"', '"old"')
LISTED_AGAIN = (
    "both sides are one bucket, where the copies of variants/* would be listed as legacy objects "
    "again: name another production bucket, or a `to` outside of `prefix`."
)
STATES = (
    "`moved` of [[entries]] number 1 is wrong: write columns with two values each, the legacy one "
    'and the production one, such as { service_name = ["amazon", "r2"] }.'
)

NAME = "the migration's `name` must be 1 to 63 letters, digits, `_`, `.` or `-`."
NUL = "a string contains a NUL character, which PostgreSQL cannot store: remove it."
SHOWN = "`rowferry plan --example` shows those that there are."
LETTERS = "letters, digits, `.`, `_` and `-`, at most 255, and no `..`."
BUCKETS = {
    "s3://old": "write 'old'.",
    "old/pictures": "write 'old', and put 'pictures/' into `from` or `to` of [[entries]].",
    "arn:aws:s3:eu-north-1:1:accesspoint/old": "access points and other ARNs are not supported.",
    "b?x": LETTERS,
    "b/../c": LETTERS,
}

MISTAKES = {
    "no name": (replaced('name = "avatars"', ""), "[migration] lacks the key `name`."),
    "empty file": ("", "the file lacks the key `migration`."),
    "no entries": (MINIMAL.partition("[[")[0], NOTHING_TO_MOVE),
    "unknown table": (MINIMAL + "[other]\na = 1", "the file has an unknown key `other`: " + SHOWN),
    "unknown key": (
        replaced('bucket = "old"', 'bucket = "old"\nbuckett = 1'),
        "[legacy] has an unknown key `buckett`: write `bucket`; " + SHOWN,
    ),
    "secret in the plan": (
        replaced('bucket = "new"', 'bucket = "new"\nsecret_access_key = "hush"'),
        "[production] has an unknown key `secret_access_key`: " + SHOWN,
    ),
    "unknown key of entries": (
        MINIMAL + 'form = "x"',
        "[[entries]] number 1 has an unknown key `form`: write `from`; " + SHOWN,
    ),
    "wrong type": (replaced('bucket = "old"', "bucket = 7"), "`legacy.bucket` is wrong: write text in quotes."),
    "one table of entries instead of a list": (
        replaced("[[entries]]", "[entries]"),
        "[entries] needs two brackets: write [[entries]], since a plan may name several tables.",
    ),
    "one bracket around objects": (
        OBJECTS.replace("[[objects]]", "[objects]"),
        "[objects] needs two brackets: write [[objects]], since a plan may name several prefixes.",
    ),
    "a key without a prefix": (replaced('from = "image/"', ""), "[[entries]] number 1 lacks the key `from`."),
    "objects without a prefix": (OBJECTS.replace("prefix =", "to ="), "[[objects]] number 1 lacks the key `prefix`."),
    "a wrong type in objects": (
        OBJECTS.replace('"variants/"', "1"),
        "`prefix` of [[objects]] number 1 is wrong: write text in quotes.",
    ),
    "objects named twice": (
        OBJECTS + '[[objects]]\nprefix = "variants/"\nto = "v/"',
        "variants/* is named twice in [[objects]]: drop one of them, or give each a `name`.",
    ),
    "objects that are copied onto themselves": (ONE_BUCKET, LISTED_AGAIN),
    "objects that are copied into themselves": (ONE_BUCKET + 'to = "variants/new/"', LISTED_AGAIN),
    "objects that are copied around themselves": (ONE_BUCKET + 'to = ""', LISTED_AGAIN),
    "empty list of entries": ("entries = []\n" + MINIMAL.partition("[[")[0], NOTHING_TO_MOVE),
    "wrong type in the second entries": (
        MINIMAL + "[[entries]]" + MINIMAL.partition("[[entries]]")[2].replace('"path"', "[]"),
        "`key` of [[entries]] number 2 is wrong: write text in quotes.",
    ),
    "unknown transfer": (
        replaced('name = "avatars"', 'name = "avatars"\ntransfer = "teleport"'),
        '`migration.transfer` is "teleport": write one of "auto", "server", "stream".',
    ),
    "unknown tags": (
        replaced('"new"', '"new"\ntags = "keep"'),
        '`production.tags` is "keep": write one of "copy", "none", or a table such as { team = "images" }.',
    ),
    "no attempts": (
        replaced('name = "avatars"', 'name = "avatars"\nmax_attempts = 0'),
        "`migration.max_attempts` is wrong: write a whole number of at least 1.",
    ),
    "name with a space": (replaced('"avatars"', '"my avatars"'), NAME),
    "name of two lines": (replaced('"avatars"', '"avatars\\n"'), NAME),
    "empty bucket": (replaced('"old"', '""'), "[legacy] has an empty `bucket`."),
    "empty column": (replaced('key = "path"', 'key = ""'), "an [[entries]] has an empty `table`, `id` or `key`."),
    "same prefixes": (
        replaced('"avatar/"', '"image/"'),
        "`from` and `to` of public.avatars.path are the same, "
        "so a row could not tell whether its object has moved: give `to` another prefix, "
        'name the column that tells in `moved`, or leave the rows with `rows = "stay"`.',
    ),
    "one value of a state": (MINIMAL + "moved = { store = [1] }", STATES),
    "three values of a state": (MINIMAL + 'moved = { service = ["a", "b"], "my store" = ["a", "b", "c"] }', STATES),
    "a state that is no list": (MINIMAL + 'moved = { store = "new" }', STATES),
    "a state of a wrong type": (MINIMAL + "moved = { store = [1, [2]] }", STATES),
    "states that are no table": (MINIMAL + 'moved = "store"', STATES),
    "a path that is none": (
        MINIMAL + 'path = "derivatives.*.id"',
        '`path` is "derivatives.*.id": begin it with `$`, the document, such as "$.id".',
    ),
    "empty region": (
        replaced('"old"', '"old"\nregion = ""'),
        '[legacy] has an empty `region`: leave it out, or write the server\'s own, such as "us-east-1".',
    ),
    "NUL in a text": (MINIMAL + 'name = "\\u0000"', NUL),
    "NUL in a name": (MINIMAL + 'moved = { "a\\u0000" = [1, 2] }', NUL),
    "entries named twice": (
        MINIMAL + "[[entries]]" + MINIMAL.partition("[[entries]]")[2],
        "public.avatars.path is named twice in [[entries]]: drop one of them, or give each a `name`.",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_mistake_has_its_sentence(mistake: str, path: Path) -> None:
    text, sentence = MISTAKES[mistake]
    assert mistake_in(path, text) == sentence


@pytest.mark.parametrize("bucket", BUCKETS)
def test_what_is_no_name_of_a_bucket_has_its_sentence(bucket: str, path: Path) -> None:
    sentence = f"`bucket` of [legacy] must be the bucket's name alone, not '{bucket}': {BUCKETS[bucket]}"
    assert mistake_in(path, replaced('"old"', f'"{bucket}"')) == sentence


ENTRY = {"table": "public.avatars", "id": "id", "key": "path", "from": "image/", "to": "avatar/"}
TEXTS = ENTRY | {
    "within": "text",
    "from": "https://old/",
    "to": "https://new/",
    "legacy_object": "",
    "production_object": "",
}
COMPUTED = {
    "table": "public.blobs",
    "id": "id",
    "objects": "id::text",
    "legacy_object": "b/",
    "production_object": "b/",
}
STATE = {"key": "backend", "from": "", "to": ""}
NOT_MEANT = (
    (ENTRY | {"key": "id"}, "`id` and `key` of public.avatars.id are one column"),
    (ENTRY | {"where": "id > 3; drop table avatars"}, "has a semicolon: give a condition, not a statement"),
    (ENTRY | {"where": "id > 3) or (true"}, "closes a bracket that it has not opened"),
    (ENTRY | {"where": "(id > 3"}, "has a bracket that nothing closes"),
    (ENTRY | {"where": "path = 'a"}, "has a ' that nothing closes"),
    (ENTRY | {"where": "id > 3 /* so far"}, "has a /* that nothing closes"),
    (ENTRY | {"where": " -- nothing yet"}, "says nothing"),
    (ENTRY | {"names": "folder", "rows": "stay"}, "copy the folders by [[objects]]"),
    (ENTRY | {"names": "object", "may_be_empty": True}, 'add `names = "folder"`'),
    (TEXTS | {"from": ""}, "needs a `from` and a `to` by which URLs are found"),
    (TEXTS | {"path": "$.a"}, "leave out `path`, `objects` and `optional`"),
    (TEXTS | {"objects": "'a'"}, "leave out `path`, `objects` and `optional`"),
    (COMPUTED, "no column of public.blobs could tell whether its objects have moved"),
    (COMPUTED | {"rows": "stay", "from": "a"}, "are about a text: name its column by `key`"),
    (COMPUTED | {"rows": "stay", "encoding": "percent"}, "are about a text: name its column by `key`"),
    (COMPUTED | {"moved": {"id": ["a", "b"]}}, "names id, which is its `id`: name another column"),
    (COMPUTED | STATE | {"moved": {"backend": ["fs", "s3"]}}, "names backend, which is its `key`: leave out `key`"),
    ({"table": "public.blobs", "id": "id", "rows": "stay"}, "public.blobs has neither a `key` nor `objects`"),
    (
        {"table": "public.blobs", "id": "id", "rows": "stay", "optional": "id::text", **STATE},
        "give that too, or leave out `key` where no object of a row is required",
    ),
)


@pytest.mark.parametrize(("entry", "words"), NOT_MEANT)
def test_entries_that_cannot_be_meant_get_a_sentence(entry: dict[str, Any], words: str) -> None:
    sides = {"legacy": {"bucket": "old"}, "production": {"bucket": "new"}}
    with pytest.raises(PlanError) as caught:
        parse_plan({"migration": {"name": "m"}, **sides, "entries": [entry]}, "of the test")
    assert words in str(caught.value)


def test_a_file_that_is_not_there_or_no_text_or_no_toml_is_no_plan(path: Path) -> None:
    with pytest.raises(PlanError, match=r"^There is no plan at .*rowferry.toml: write one .* --plan\.$"):
        read_plan(path)
    assert mistake_in(path, "[migration\nname = 3").startswith(f"The plan {path} is not valid TOML: ")
    assert mistake_in(path, "key = path").endswith("; correct that place, texts in quotes.")
    assert "line 1" in mistake_in(path, "[migration\nname = 3")
    path.write_bytes(b"\xff\xfe\x00")
    for unreadable in (path, path.parent):
        with pytest.raises(PlanError, match="cannot be read"):
            read_plan(unreadable)


TEXTS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
"""What jsonb can hold."""


def sides(kind: type[Side]) -> st.SearchStrategy[Side]:
    words = st.text(TEXTS, min_size=1, max_size=5)
    rates = st.none() | st.floats(0.1, 1000)
    return st.builds(
        kind, st.text("aB9", min_size=1, max_size=5), st.none() | words, words, st.none() | words,
        st.sampled_from(["auto", "path", "virtual"]), rates,
    )  # fmt: skip


ENTRIES = st.builds(
    Entries,
    st.text("aB", min_size=1),
    st.just("id"),
    st.just("path"),
    st.just("a/"),
    st.text(TEXTS).filter(lambda prefix: prefix != "a/"),
    st.none() | st.text(TEXTS).filter(lambda where: find_fault(where) is None),
)
OBJECT_PREFIXES = st.builds(ObjectPrefix, st.text("c", min_size=1), st.text("d", min_size=1))
PLANS = st.builds(
    Plan,
    st.builds(
        MigrationSettings,
        st.just("name"),
        st.sampled_from(["auto", "server", "stream"]),
        st.integers(1, 99),
        st.booleans(),
        st.none() | st.integers(5 * 1024**2, 5 * 1024**3),
    ),
    sides(LegacySide),
    sides(ProductionSide),
    st.lists(ENTRIES, min_size=1, unique_by=lambda e: e.table).map(tuple),
    st.builds(DatabaseLimits, st.none() | st.floats(1, 100), st.none() | st.floats(1, 100)),
    st.lists(OBJECT_PREFIXES, max_size=2, unique_by=lambda objects: objects.label).map(tuple),
)


@given(PLANS)
def test_what_the_database_keeps_is_read_back_as_it_was(plan: Plan) -> None:
    assert parse_plan(plan_document(plan), "kept") == plan


@pytest.mark.parametrize(
    ("transfer", "legacy", "production", "server_side"),
    [
        ("auto", {}, {}, True),
        ("auto", {"endpoint_url": "http://a"}, {"endpoint_url": "http://a"}, True),
        ("auto", {"endpoint_url": "http://a"}, {}, False),
        ("auto", {"endpoint_url": "http://a:80/"}, {"endpoint_url": "HTTP://A"}, True),
        ("auto", {"endpoint_url": "https://a:443"}, {"endpoint_url": "https://a/"}, True),
        ("auto", {"endpoint_url": "https://a:444"}, {"endpoint_url": "https://a"}, False),
        ("auto", {"endpoint_url": "https://a/s3/"}, {"endpoint_url": "https://a/s3"}, True),
        ("auto", {"endpoint_url": "https://a/s3"}, {"endpoint_url": "https://a/S3"}, False),
        ("auto", {"endpoint_url": "http://a"}, {"endpoint_url": "https://a"}, False),
        ("auto", {"region": "eu-central-1"}, {}, False),
        ("stream", {}, {}, False),
        ("server", {"endpoint_url": "http://a"}, {}, True),
    ],
)
def test_the_server_copies_by_itself_where_both_sides_are_one_endpoint(
    transfer: Any, legacy: dict[str, Any], production: dict[str, Any], server_side: bool
) -> None:
    sides = (LegacySide("old", **legacy), ProductionSide("new", **production))
    entries = (Entries("t", "id", "key", "image/", "avatar/"),)
    assert Plan(MigrationSettings("name", transfer), *sides, entries).server_side is server_side
