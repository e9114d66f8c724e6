"""The function of docs/queues.md, with its plan, SQL and commands, run as they are written."""

import tomllib
from typing import Any

import pytest

from support.docs.doc_pages import ROOT, read_blocks
from support.entries.entry_table import trusted
from support.entries.migration import Migration
from support.queue.plug_in import PlugIn

PAGE = ROOT / "docs" / "queues.md"
OWN_FUNCTION = 3
"""The plan and the SQL of the page that are about it."""


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
    (block,) = [block for block in read_blocks("sh", pages=[PAGE]) if "rowferry run inspect" in block.text]
    said: list[str] = []
    for program, *arguments in block.commands:
        done = site.run(*arguments, **environment)
        assert (program, done.returncode) == ("rowferry", 0), done.stderr + done.stdout
        said.append(done.stdout)
    return said


@pytest.mark.site
def test_the_function_of_the_page_counts_words(moto_migration: Migration, plug_in: PlugIn) -> None:
    moto_migration.execute(
        "create table public.documents (id bigint primary key, path text, word_count int, byte_size int)"
    )
    moto_migration.execute("insert into public.documents values (1, 'd/1.txt')")
    moto_migration.production.put("d/1.txt", b"one two\nthree\n")
    use_plan(moto_migration, OWN_FUNCTION)
    (code,) = read_blocks("python", pages=[PAGE])
    (plug_in.folder / "counting.py").write_text(code.text, encoding="utf-8")
    (registered,) = read_blocks("ini", pages=[PAGE])
    ((group, points),) = tomllib.loads(registered.text)["project"]["entry-points"].items()
    plug_in.install("counting", points, group=group)
    run_commands(moto_migration)
    assert moto_migration.execute("select word_count, byte_size from public.documents") == [
        {"word_count": 3, "byte_size": 14}
    ]
