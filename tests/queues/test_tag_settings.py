"""Settings of `tag` that cannot be meant, and what a chain hands on to it."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rowferry.errors import PlanError
from support.entries.entry_table import FROM, TO
from support.entries.migration import Migration
from support.entries.tagged_rows import PER_TENANT, add, faked_site, run


@pytest.fixture
def site(make_migration: Callable[..., Migration]) -> Iterator[Migration]:
    with faked_site(make_migration) as (migration, _):
        yield migration


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "`set` has 0 tags: write 1 to 10"),
    ({"set": {f"t{number}": "a" for number in range(11)}}, "`set` has 11 tags"),
    ({"set": {"tier": {"column": ""}}}, "the tag 'tier' of `set` names no column"),
    ({"set": {"tier": {"colum": "a"}}}, "colum"),
    ({"set": {"tier": 3}}, "write text in quotes or a table"),
    ({"set": {"tier": "a"}, "where": "true; drop"}, "the `where` has a semicolon"),
    ({"set": PER_TENANT, "of": "s3://production/"}, "the objects of s3://production/ have no rows: a column in `set`"),
    ({"set": {"tier": "a"}, "where": "true", "of": "s3://production/"}, "`where` can only be there for"),
    ({"set": PER_TENANT}, "the objects of old/\\* have no rows: a column in `set` can only be there for"),
)
"""Settings, and what is said of them."""


def test_settings_that_cannot_be_meant_are_refused_with_the_next_step(
    site: Migration, subtests: pytest.Subtests
) -> None:
    site.plan["objects"] = [{"prefix": "old/"}]
    for settings, words in REFUSED:
        site.plan["queue"]["tag"] = settings
        with subtests.test(words):
            with pytest.raises(PlanError, match=words) as caught:
                site.enqueue(queue="tag")
            assert "[queue.tag]" in str(caught.value) or "queue.tag" in str(caught.value)
            assert site.batches() == []


def test_rows_are_named_apart_from_objects_without_rows(site: Migration) -> None:
    site.plan["objects"] = [{"prefix": "old/"}]
    site.plan["queue"]["tag"]["of"] = "public.avatars.path"
    key = add(site, 1, "t1", {})
    assert run(site) == {"migrated": 1}
    assert site.production.tags(key) == {"tier": "cold", "tenant": "t1"}


def test_a_chain_that_leads_to_tag_needs_its_settings(site: Migration) -> None:
    site.plan["queue"] = {"migrate": {"then": ["tag"]}}
    with pytest.raises(PlanError, match=re.escape("In [queue.tag] of the plan avatars, `set` has 0 tags")):
        site.enqueue()


def test_a_chain_hands_on_only_what_the_next_queue_is_of(site: Migration) -> None:
    """Neither the rows of another table, which has no such column, nor objects without rows."""
    site.execute("create table public.banners (id bigint primary key, path text)")
    site.plan["entries"].append({**site.plan["entries"][0], "table": "public.banners", "name": "banners"})
    site.plan["objects"] = [{"prefix": "old/", "to": "new/"}]
    site.plan["queue"] = {"migrate": {"then": ["tag"]}, "tag": {"of": "public.avatars.path", "set": PER_TENANT}}
    for key in (f"{FROM}1.png", f"{FROM}2.png", "old/3.png"):
        site.legacy.put(key, b"body")
    site.execute("insert into public.avatars values (1, %s, 't1')", (f"{FROM}1.png",))
    site.execute("insert into public.banners values (2, %s)", (f"{FROM}2.png",))
    site.enqueue()
    site.work("migrate", "tag")
    assert site.counts("migrate") == {"migrated": 3}
    assert site.counts("tag") == {"migrated": 1}
    assert site.statuses() == {"DONE"}
    site.check_balance()
    assert site.production.tags(f"{TO}1.png") == {"tier": "cold", "tenant": "t1"}
    assert site.production.tags(f"{TO}2.png") == site.production.tags("new/3.png") == {}


def test_what_only_rows_can_tell_is_not_left_out_for_objects_without_rows(site: Migration) -> None:
    """Another queue hands on a prefix of a bucket, which `of` does not name."""
    site.production.put("cold/1.png", b"body")
    site.enqueue(queue="tag")
    site.execute(
        "insert into rowferry.batch_queue (migration_id, queue_name, payload, entry_count, max_attempts) "
        """select id, 'tag', '{"entries": "s3://production/cold/", "objects": "range", "first": "cold/", "last": null,
        "size": 10, "side": "production", "prefix": "cold/"}', 1, 3 from rowferry.migration"""
    )
    site.work("tag")
    assert "RELEASED" in site.verdicts()
    assert "has no rows: name the [[entries]] that are meant in `of` of [queue.tag]" in site.attempts()[0]["error"]
    assert site.production.tags("cold/1.png") == {}
