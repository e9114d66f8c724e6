"""The SQL, the plans, the function and the commands of docs/inspect.md, run as they are written."""

import gzip
import re
import tomllib
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from rowferry_queues.inspect.content import WINDOW_LOG
from rowferry_queues.inspect.spec import FACTS, INSPECT, InspectSettings, MiB
from rowferry_worker.objects.reading import WHOLE_BYTES
from support.docs.doc_pages import ROOT, read_blocks, read_section
from support.entries.entry_table import trusted
from support.entries.migration import Migration
from support.queue.plug_in import PlugIn
from support.s3.buckets import Buckets

PAGE = ROOT / "docs" / "inspect.md"
OWN_COLUMNS, OF_PREFIX, OWN_FUNCTION = range(3)


@pytest.fixture
def site(moto_buckets: Buckets, make_migration: Callable[..., Migration]) -> Migration:
    return make_migration(moto_buckets, moto_buckets)


def use_plan(site: Migration, number: int) -> None:
    """Let a plan of the page work on the buckets of the test."""
    plan: dict[str, Any] = tomllib.loads(read_blocks("toml", pages=[PAGE])[number].text)
    plan["production"] |= {"bucket": site.production.bucket, "endpoint_url": site.production.endpoint_url}
    site.plan = plan
    site.write_plan()
    for block in read_blocks("sql", pages=[PAGE])[number : number + 1]:
        site.execute(trusted(block.text))


def run_commands(site: Migration, **environment: str) -> list[str]:
    """Run the commands of the page, and return what they say."""
    (block,) = [block for block in read_blocks("sh", pages=[PAGE]) if "rowferry run" in block.text]
    said: list[str] = []
    for program, *arguments in block.commands:
        done = site.run(*arguments, **environment)
        assert (program, done.returncode) == ("rowferry", 0), done.stderr + done.stdout
        said.append(done.stdout)
    return said


@pytest.mark.site
def test_the_commands_fill_columns_of_the_table(site: Migration) -> None:
    use_plan(site, OWN_COLUMNS)
    site.production.put("a/1.png", b"\x89PNG\r\n\x1a\n")
    site.execute("insert into public.avatars (id, path) values (1, 'a/1.png')")
    _, checked, ran = run_commands(site)
    assert "public.avatars has the columns of [queue.inspect]" in checked
    assert "objects inspected 1, facts written 1" in ran
    (row,) = site.execute("select * from public.avatars")
    assert (row["byte_size"], row["digest"].hex()) == (8, sha256(b"\x89PNG\r\n\x1a\n").hexdigest())
    assert row["content_type"] == "image/png"
    assert "facts written 0" in run_commands(site)[-1]


@pytest.mark.site
def test_a_prefix_fills_a_table_beside(site: Migration) -> None:
    use_plan(site, OF_PREFIX)
    for key in ("logs/1.gz", "other/1.gz"):
        site.production.put(key, gzip.compress(b"one\ntwo\n"))
    run_commands(site)
    assert site.execute("select * from public.object_facts") == [
        {"object_key": "logs/1.gz", "line_count": 2, "inflated_size": 8}
    ]


@pytest.mark.site
def test_the_function_of_the_page_counts_words(site: Migration, plug_in: PlugIn) -> None:
    site.execute("create table public.documents (id bigint primary key, path text, word_count int, byte_size int)")
    site.execute("insert into public.documents values (1, 'd/1.txt')")
    site.production.put("d/1.txt", b"one two\nthree\n")
    use_plan(site, OWN_FUNCTION)
    (code,) = read_blocks("python", pages=[PAGE])
    (plug_in.folder / "counting.py").write_text(code.text, encoding="utf-8")
    (registered,) = read_blocks("ini", pages=[PAGE])
    ((group, points),) = tomllib.loads(registered.text)["project"]["entry-points"].items()
    plug_in.install("counting", points, group=group)
    run_commands(site)
    assert site.execute("select word_count, byte_size from public.documents") == [{"word_count": 3, "byte_size": 14}]


def test_the_page_names_all_facts_settings_outcomes_and_bounds() -> None:
    assert set(FACTS) <= set(re.findall(r"`(\w+)`", read_section(PAGE, "Facts")))
    settings = read_section(PAGE, "Settings")
    assert all(f"`{name}`" in settings for name in InspectSettings.__struct_encode_fields__)
    assert all(f"`{outcome}`" in read_section(PAGE, "Outcomes") for outcome in INSPECT.words.outcomes)
    text = PAGE.read_text()
    most = InspectSettings(columns={"size": "size"}).max_inflated_bytes
    assert (1024 * MiB, 8 * MiB, MiB // 8) == (most, 1 << WINDOW_LOG, WHOLE_BYTES)
    assert all(words in text for words in ("1 GiB", "8 MiB", "128 KiB"))
