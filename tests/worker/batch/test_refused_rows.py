"""One row that the database refuses stays behind; the other ninety-nine follow their objects."""

import pytest

from support.entries.migration import Migration


def test_a_check_constraint_stops_one_row_and_no_other(any_migration: Migration) -> None:
    any_migration.execute("alter table public.avatars add constraint no_57 check (path <> 'avatar/u57/me.png')")
    any_migration.given(100)
    assert any_migration.work() == {"migrated": 99, "failed": 1}
    assert any_migration.batch()["status"] == "ERROR"
    assert 'violates check constraint "no_57"' in any_migration.failure_of(57)[2]
    any_migration.audit(legacy_left=[57])


TRIGGER = """
    create function public.object_to_it() returns trigger language plpgsql as $$
    begin
        if new.path like 'avatar/u_/%' then {reaction}; end if;
        return new;
    end $$
"""


@pytest.mark.parametrize(
    ("reaction", "words"),
    [
        ("raise exception 'not with me'", "not with me"),
        ("return null", "the update left the row as it was"),
        ("new.path := lower(new.path) || '?'", "the row took another key than it was given"),
    ],
    ids=["raises", "skips", "rewrites"],
)
def test_rows_that_a_trigger_objects_to_are_left_out(reaction: str, words: str, migration: Migration) -> None:
    migration.execute(TRIGGER.format(reaction=reaction))
    migration.execute(
        "create trigger objection before update on public.avatars for each row execute function public.object_to_it()"
    )
    migration.given(20)
    assert migration.work() == {"migrated": 11, "failed": 9}
    assert words in migration.failure_of(3)[2]
    migration.audit(legacy_left=range(1, 10))


DEFERRED = {
    "unique": "alter table public.avatars add constraint once unique (path) deferrable initially deferred",
    "trigger": (
        "create constraint trigger objection after update on public.avatars deferrable initially deferred "
        "for each row when (new.path = 'avatar/u7/me.png') execute function public.object_to_it()"
    ),
    "foreign key": (
        "alter table public.avatars add constraint known foreign key (path) references public.known (path) "
        "deferrable initially deferred"
    ),
}


@pytest.mark.parametrize("kind", DEFERRED)
def test_a_deferred_constraint_stops_one_row_and_no_other(kind: str, migration: Migration) -> None:
    """At COMMIT it would be too late to leave one row out."""
    migration.execute(TRIGGER.format(reaction="raise exception 'not with me'"))
    migration.execute(
        "create table public.known as select format('%s/u%s/me.png', form, n) as path "
        "from generate_series(1, 20) as n cross join (values ('image'), ('avatar')) as f (form)"
    )
    migration.execute("delete from public.known where path = 'avatar/u7/me.png'")
    migration.execute("alter table public.known add primary key (path)")
    migration.fill(20)
    migration.execute(DEFERRED[kind])
    if kind == "unique":
        migration.add_row(99, "avatar/u7/me.png")
    assert migration.migrate() == {"migrated": 19, "failed": 1}
    assert migration.failure_of(7)[0] == "failed"
    migration.audit(legacy_left=[7])


def test_a_key_too_long_for_its_column_is_left_out(migration: Migration) -> None:
    migration.execute("alter table public.avatars alter column path type varchar(20)")
    migration.fill(3)
    migration.add(4, "a" * 14)
    assert migration.migrate() == {"migrated": 3, "failed": 1}
    assert "value too long" in migration.failure_of(4)[2]
    migration.audit(legacy_left=[4])
