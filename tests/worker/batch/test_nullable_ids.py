"""Ids that may be null: where rows stay, they name rows as long as none is null."""

import pytest

from rowferry.errors import UsageError
from support.entries.checks import entries_of, problems
from support.entries.migration import Migration
from support.queue.queue_runs import outcomes, verify


@pytest.fixture
def thumbnails(migration: Migration) -> Migration:
    """Synapse: a unique index over columns that may be null, and no primary key."""
    migration.execute("create table public.thumbnails (media text, width integer, method text)")
    migration.execute("create unique index on public.thumbnails (media, width, method)")
    for number in range(1, 7):
        media = f"m{number % 3}"
        migration.execute("insert into public.thumbnails values (%s, %s, 'crop')", (media, number))
        migration.legacy.put(f"thumbs/{media}/{number}", b"body")
    migration.plan_entries(
        "public.thumbnails", id=["media", "width", "method"], objects="'thumbs/' || media || '/' || width", rows="stay"
    )
    return migration


def test_rows_without_nulls_are_copied_and_only_rows_that_move_need_ids_that_cannot_be_null(
    thumbnails: Migration,
) -> None:
    assert problems(thumbnails) == []
    assert thumbnails.migrate(2) == {"migrated": 6}
    assert len(thumbnails.production.listing()) == 6
    assert outcomes(verify(thumbnails)) == {"kept": 6}
    thumbnails.execute("alter table public.thumbnails add column store text default 'old'")
    del entries_of(thumbnails)["rows"]
    entries_of(thumbnails)["moved"] = {"store": ["old", "new"]}
    assert problems(thumbnails) == ["public.thumbnails by media, width, method may be null"]


def test_a_row_whose_id_is_null_is_refused_in_every_pass(thumbnails: Migration) -> None:
    thumbnails.migrate()
    thumbnails.execute("insert into public.thumbnails values ('m9', 9, null), ('m9', 9, null), (null, 5, 'crop')")
    entries_of(thumbnails)["objects"] = "'thumbs/' || coalesce(media, 'none') || '/' || width"
    (found,) = problems(thumbnails)
    assert found == "3 rows of public.thumbnails have no media, width, method, so no batch could name them"
    with pytest.raises(UsageError, match=r"3 rows of .* have no media"):
        thumbnails.enqueue()
    entries_of(thumbnails)["where"] = "method is not null and media is not null"
    assert problems(thumbnails) == []
    thumbnails.execute("delete from rowferry.batch_queue")
    assert thumbnails.migrate() == {"kept": 6}
