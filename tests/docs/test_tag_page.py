"""The plans and the commands of docs/tag.md, run as they are written."""

import tomllib
from collections.abc import Callable
from typing import Any

import pytest

from rowferry.plan.properties import MAX_TAG_NAME, MAX_TAG_VALUE, MAX_TAGS, TAG_SIGNS
from rowferry_queues.tag.spec import TAG
from support.docs.doc_pages import ROOT, read_blocks, read_section
from support.entries.listed_objects import outcomes
from support.entries.migration import Migration
from support.s3.buckets import Buckets

PAGE = ROOT / "docs" / "tag.md"
OF_TABLE, OF_PREFIX, OF_CHAIN = range(3)
LONG_AGO = "now() - interval '2 years'"


@pytest.fixture
def site(moto_buckets: Buckets, make_migration: Callable[..., Migration]) -> Migration:
    migration = make_migration(moto_buckets, moto_buckets)
    migration.execute("alter table public.avatars add tenant_id int, add last_seen_at timestamptz")
    return migration


def use_plan(site: Migration, number: int) -> None:
    """Let a plan of the page work on the buckets of the test."""
    plan: dict[str, Any] = tomllib.loads(read_blocks("toml", pages=[PAGE])[number].text)
    for side in {"legacy", "production"} & plan.keys():
        plan[side] |= {"bucket": getattr(site, side).bucket, "endpoint_url": site.production.endpoint_url}
    site.plan = plan
    site.write_plan()


def add(site: Migration, row_id: int, tenant: int | None, last_seen_at: str = LONG_AGO) -> str:
    key = f"avatar/{row_id}.png"
    site.production.put(key, b"body", Tagging="owner=me")
    site.execute(f"insert into public.avatars values (%s, %s, %s, {last_seen_at})", (row_id, key, tenant))
    return key


def run_commands(site: Migration) -> list[str]:
    """Run the commands of the page, and return what they say."""
    (block,) = read_blocks("sh", pages=[PAGE])
    said: list[str] = []
    for program, *arguments in block.commands:
        done = site.run(*arguments)
        assert (program, done.returncode) == ("rowferry", 0), done.stderr + done.stdout
        said.append(done.stdout)
    return said


@pytest.mark.site
def test_the_commands_tag_the_objects_of_a_table(site: Migration) -> None:
    use_plan(site, OF_TABLE)
    tenant, null, recent = add(site, 1, 7), add(site, 2, None), add(site, 3, 7, "now()")
    _, checked, ran = run_commands(site)
    assert f"objects of the production bucket {site.production.bucket} can be tagged" in checked
    assert "objects tagged 2, had their tags 0" in ran
    assert site.production.tags(tenant) == {"owner": "me", "tier": "cold", "tenant": "7"}
    assert site.production.tags(null) == {"owner": "me", "tier": "cold"}
    assert site.production.tags(recent) == {"owner": "me"}
    assert "objects tagged 0, had their tags 2" in run_commands(site)[-1]


@pytest.mark.site
def test_a_prefix_is_tagged_without_a_table(site: Migration) -> None:
    use_plan(site, OF_PREFIX)
    for key in ("cold/1.png", "warm/1.png"):
        site.production.put(key, b"body", Tagging="owner=me")
    run_commands(site)
    assert site.production.tags("cold/1.png") == {"owner": "me", "tier": "cold"}
    assert site.production.tags("warm/1.png") == {"owner": "me"}


@pytest.mark.site
def test_objects_are_tagged_as_they_are_migrated(site: Migration) -> None:
    use_plan(site, OF_CHAIN)
    site.legacy.put("image/1.png", b"body")
    site.execute("insert into public.avatars values (1, 'image/1.png', 7)")
    done = site.run("run", "migrate", "--yes")
    assert done.returncode == 0, done.stderr + done.stdout
    assert site.production.tags("avatar/1.png") == {"tenant": "7"}
    assert outcomes(site) == outcomes(site, "tag") == {"migrated": 1}


def test_the_page_names_all_outcomes_settings_and_bounds() -> None:
    said = read_section(PAGE, "Outcomes")
    assert all(f"`{outcome}`" in said for outcome in TAG.words.outcomes)
    assert f"`{' '.join(sorted(TAG_SIGNS, key='+-=._:/@'.index))}`" in said
    assert all(f" {bound} " in said for bound in (MAX_TAGS, MAX_TAG_NAME, MAX_TAG_VALUE))
    settings = read_section(PAGE, "Settings")
    assert all(f"`{name}`" in settings for name in TAG.settings.__struct_encode_fields__)
