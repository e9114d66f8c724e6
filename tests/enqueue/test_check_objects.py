"""A check looks at the entries' own objects, shows what becomes of their keys, and tells an empty table from a full."""

import pytest
from msgspec.structs import replace

from rowferry.plan import Entries
from rowferry_enqueue.checks.buckets.objects import guess_cause
from support.entries.checks import add_second_table, check, entries_of, problems
from support.entries.entry_table import FROM
from support.entries.migration import Migration
from support.processes.cli import refused, well


def found(migration: Migration, words: str, **more: bool) -> list[str]:
    return [f"{finding.what} {finding.remedy}" for finding in check(migration, **more) if words in finding.what]


def test_objects_that_are_there_are_counted_and_a_few_missing_ones_are_a_note(any_migration: Migration) -> None:
    any_migration.fill(30)
    assert "30 of 30 sampled legacy objects exist" in found(any_migration, "sampled")[0]
    any_migration.add_legacy([31])
    assert problems(any_migration) == []
    assert "30 of 31 sampled legacy objects exist, 1 is missing" in found(any_migration, "sampled")[0]


def test_a_missing_object_leaves_the_exit_status(migration: Migration) -> None:
    """No setting would move it, and nobody is to be stopped by one of millions."""
    migration.fill(3).add_legacy([4]).write_plan()
    done = migration.run_here("check")
    assert (done.returncode, done.stderr) == (0, "")
    assert "public.avatars.path: 3 of 4 sampled legacy objects exist, 1 is missing" in done.stdout


def test_the_exit_status_tells_a_part_that_would_not_move(migration: Migration) -> None:
    """Most objects are missing once it has begun: the plan is wrong of a part."""
    migration.fill(1).write_plan()
    assert migration.run_here("migrate", "--yes", "--processes", "1").returncode == 0
    migration.add_legacy(range(2, 40))
    for command in ("check", "migrate --dry-run"):
        done = migration.run_here(*command.split())
        assert done.returncode == 1, done.stdout
    assert "! public.avatars.path: 0 of 38 sampled legacy objects exist, 38 are missing" in done.stdout
    assert "Dry run: nothing was written." in done.stdout


def test_a_hundred_entries_are_looked_at_spread_over_the_ids(logged_migration: Migration, log) -> None:
    logged_migration.fill(300)
    check(logged_migration)
    asked = {seen.key for seen in log.seen if seen.method == "HEAD" and seen.key.startswith(FROM)}
    assert len(asked) == 100
    numbers = {int(key.removeprefix(f"{FROM}u").partition("/")[0]) for key in asked}
    assert all(numbers & set(range(start, start + 60)) for start in range(1, 300, 60))


def test_three_real_keys_show_what_becomes_of_them_each_once(migration: Migration) -> None:
    entries_of(migration)["to"] = "avatar"  # where `avatar/` was meant
    migration.fill(1).insert({"2": "image/u1/me.png"})
    (example,) = found(migration, "for example")
    assert "'image/u1/me.png' becomes 'avataru1/me.png'" in example
    migration.fill(5, start=3)
    assert len(found(migration, "for example")) == 3


def test_no_object_is_a_problem_until_entries_were_migrated(migration: Migration) -> None:
    migration.add_legacy(range(10, 15))
    (words,) = [words for words in problems(migration) if "sampled" in words]
    assert "0 of 5 sampled legacy objects exist, 5 are missing, for example 'image/" in words
    migration.execute("truncate public.avatars")
    migration.given(3).work()
    migration.add_legacy([10])
    assert problems(migration) == []
    (words,) = found(migration, "1 is missing")
    assert words.endswith(" its entry ends as missing: see `rowferry errors` then")
    migration.add_legacy([11, 12])
    assert problems(migration) == []
    assert found(migration, "3 are missing")


def test_of_two_tables_each_is_judged_by_itself(migration: Migration) -> None:
    migration.fill(3)
    add_second_table(migration, to="banner/")
    migration.execute("insert into public.banners values (1, 'image/nowhere.png')")
    (words,) = problems(migration)
    assert words.startswith("public.banners.path: 0 of 1 sampled")


CAUSES = (
    ("https://cdn.example/image/a.png", "image/a.png", "URLs",
     "into `from`, and add `legacy_object` and `production_obj"),
    ("//cdn.example/image/a.png", "image/a.png", "URLs", ""),
    ("image/a.png", "media/image/a.png", "begin with more than the column holds, for example 'media/image/a.png'",
     'add `legacy_object = "media/image/"` to the plan'),
    ("image/a%20b.png", "image/a b.png", "percent-encoded", 'add `encoding = "percent"` to the plan'),
    ("image/a.png", "other/b.png", "does hold 'other/b.png'", ""),
    ("/image/a.png", "image/a.png", "begin with `/`", ""),
)  # fmt: skip
"""What the column holds, the key of the object, the likely cause, and words of the remedy."""


def test_the_likely_cause_is_said_with_a_remedy_that_is_a_field_of_the_plan(
    moto_migration: Migration, subtests: pytest.Subtests
) -> None:
    for column, key, cause, remedy in CAUSES:
        entries_of(moto_migration)["from"] = column[: column.index("image/") + len("image/")]
        moto_migration.execute("truncate public.avatars")
        moto_migration.add_row(1, column)
        moto_migration.legacy.put(key, b"body")
        with subtests.test(f"{column} {key}"):
            (words,) = found(moto_migration, "sampled")
            assert cause in words
            assert remedy in words
        moto_migration.legacy.delete(key)


def test_a_cause_is_guessed_without_a_listing() -> None:
    entries = Entries("t", "id", "k", "image/", "avatar/")
    assert "prefix outside the column" in guess_cause(["image/a.png"], None, entries)
    assert "objects` may yield other keys" in guess_cause(["a"], None, replace(entries, objects="'a'"))


def test_an_object_that_may_not_be_seen_or_read_is_not_called_missing(logged_migration: Migration, log) -> None:
    logged_migration.fill(3)
    is_object = lambda seen: seen.key.startswith(FROM)  # noqa: E731
    with log.refusing(is_object, 403, "AccessDenied"), log.answering(is_object, b"HTTP/1.1 403 No\r\n\r\n"):
        (words,) = [words for words in problems(logged_migration) if "legacy" in words]
    assert "cannot be read: " in words
    assert "missing" not in words
    logged_migration.legacy.delete(f"{FROM}u3/me.png")
    with log.refusing(lambda seen: is_object(seen) and "u3" not in seen.key, 403, "AccessDenied"):
        (words,) = [words for words in problems(logged_migration) if "cannot be read: " in words]
    assert "s3:GetObject" in words or "AccessDenied" in words


def test_no_legacy_entry_is_a_problem_unless_it_is_allowed(migration: Migration) -> None:
    migration.insert({"1": "avatar/1.png", "2": "elsewhere/2.png"}).write_plan()
    (words,) = problems(migration, allow_empty=False)
    assert words == (
        "there are 0 legacy entries to migrate: public.avatars.path has 1 in production form and 1 in neither "
        "(for example 'elsewhere/2.png')"
    )
    assert problems(migration, allow_empty=True) == []
    for command in ("check", "migrate --dry-run", "migrate --processes 1 --yes"):
        said = refused(migration.run_here(*command.split()))
        assert "0 legacy entries" in said
        assert "--allow-empty" in said
        assert migration.run_here(*command.split(), "--allow-empty").returncode == 0


def test_a_migration_that_is_over_may_be_run_again(migration: Migration) -> None:
    migration.write_plan().fill(2)
    for _ in range(2):
        well(migration.run_here("migrate", "--processes", "1", "--yes"))


@pytest.mark.soak
def test_a_listing_that_cannot_be_had_is_a_note(logged_migration: Migration, log) -> None:
    logged_migration.fill(2)
    with log.refusing(lambda seen: "list-type" in seen.query, 500, "InternalError"):
        assert problems(logged_migration) == []
        assert found(logged_migration, "cannot be listed")


@pytest.mark.parametrize(
    ("spelled", "held", "typed"),
    [
        ("image/Ü.png", "image/U\u0308.png", 'normalize("path", NFD)'),
        ("image/U\u0308.png", "image/Ü.png", 'normalize("path", NFC)'),
        ("image/a+b.png", "image/a b.png", """replace("path", '+', ' ')"""),
    ],
)
def test_another_spelling_in_the_bucket_is_named_by_code_points(
    spelled: str, held: str, typed: str, migration: Migration
) -> None:
    """Rows that move would name what `objects` made of their new texts: they are told to stay."""
    migration.add_row("1", spelled)
    migration.legacy.put(held, b"body")
    for rows, remedy in (("move", "let these rows stay"), ("stay", typed)):
        migration.plan["entries"][0]["rows"] = rows
        migration.write_plan()
        checked = migration.run_here("check")
        assert checked.returncode == 2
        assert f"the bucket holds {held!a}, and not {spelled!a}: " in checked.stdout
        assert remedy in checked.stdout
