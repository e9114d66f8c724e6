"""The pages that are written from commands, metrics, views and functions have all of them, as they are now."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import psycopg
import pytest

from references.__main__ import write_pages
from references.command_pages import write_man_pages
from references.command_tree import read_paragraphs, word_range
from references.metrics_page import read_labels
from references.sql_heads import split_paragraphs
from references.words import fill, mark_help, table
from rowferry.db.connection import connect
from rowferry.db.statements import list_sql, read_head
from rowferry_cli import cli
from rowferry_exporter.metrics import describe
from rowferry_worker.monitoring import metrics
from support.docs.doc_pages import ROOT, read_anchors, read_section
from support.screens.known_metrics import known_metrics

COMMANDS, FUNCTIONS, METRICS, VIEWS = (
    ROOT / "docs" / f"{name}.md" for name in ("commands", "functions", "metrics", "views")
)

each_command = pytest.mark.parametrize("name", cli.list_commands(click.Context(cli)))


def list_options(name: str) -> Iterator[click.Option]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    yield from (one for one in command.params if isinstance(one, click.Option) and not one.hidden)


def test_the_pages_are_what_their_sources_say_now(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where this fails: `make references`."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("DATABASE_URL", database)
    with connect("test") as connection:
        written = write_pages(connection)
    assert {name: (ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in written} == written


@each_command
def test_a_command_is_there_with_all_its_options(name: str) -> None:
    section = read_section(COMMANDS, f"rowferry {name}")
    for option in list_options(name):
        assert f"{option.opts[-1]}" in section
        assert str(option.envvar or "") in section


@each_command
def test_a_command_has_a_man_page_with_all_its_options(name: str) -> None:
    pages = {page: (line, text) for page, line, text in write_man_pages("https://docs.example")}
    line, text = pages[f"rowferry-{name}"]
    assert line
    assert f"**rowferry-{name}**(1)" in pages["rowferry"][1]
    for option in list_options(name):
        assert re.search(rf"^`.*{option.opts[-1]}.*`\n: ", text, re.MULTILINE), option.opts


@pytest.mark.parametrize(("page", "catalogue"), [(VIEWS, "relname"), (FUNCTIONS, "proname")])
def test_every_view_and_function_of_the_schema_is_there(page: Path, catalogue: str, database: str) -> None:
    queries = {
        "relname": "select relname from pg_class where relkind = 'v' and relnamespace = 'rowferry'::regnamespace",
        "proname": "select distinct proname from pg_proc where pronamespace = 'rowferry'::regnamespace",
    }
    with psycopg.connect(database) as connection:
        names = {name for (name,) in connection.execute(queries[catalogue].encode()).fetchall()}
    headings = {anchor.removeprefix("rowferry") for anchor in read_anchors(page) if anchor.startswith("rowferry")}
    assert names
    assert headings == names


def test_the_database_says_the_same_to_psql(database: str) -> None:
    query = """
        select c.relname, obj_description(c.oid, 'pg_class') from pg_class as c
        where c.relkind = 'v' and c.relnamespace = 'rowferry'::regnamespace
        union all
        select p.proname, obj_description(p.oid, 'pg_proc') from pg_proc as p
        where p.pronamespace = 'rowferry'::regnamespace
    """
    with psycopg.connect(database) as connection:
        described = dict(connection.execute(query).fetchall())
    paths = [*list_sql("views"), *list_sql("functions")]
    assert described == {path.stem: "\n".join(read_head(path)) for path in paths}


def test_every_metric_is_there_with_its_labels() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| \w+ \|(.*?)\|", METRICS.read_text("utf-8"), re.MULTILINE))
    assert set(rows) == {re.sub(r"_(bucket|count|sum)$", "", name) for name in known_metrics()}
    families = [*describe(None), metrics.entries, metrics.build_info]
    assert [list(read_labels(family)) for family in families] == [[], ["migration", "queue", "outcome"], ["version"]]
    assert rows["rowferry_entries_total"].split() == ["`migration`", "`queue`", "`outcome`"]


@pytest.mark.parametrize(
    ("bounds", "words"),
    [("1<=x<=64", "1 to 64"), ("x>=1", "at least 1"), ("x<=9", "at most 9"), ("0.0<x<1.0", "0.0<x<1.0")],
)
def test_bounds_are_said_in_words(bounds: str, words: str) -> None:
    assert word_range(bounds) == words


def test_paragraphs_that_click_does_not_wrap_keep_their_lines() -> None:
    assert read_paragraphs("One\nline.\n\n\b\nFor example:\n  do  this") == ["One line.", "For example:\n  do  this"]


def test_options_variables_and_files_are_code_and_the_rest_is_text() -> None:
    assert mark_help("--plan a<b> `--x *` ROWFERRY_* is_it a-b my.toml *") == (
        "`--plan` a\\<b> `--x *` `ROWFERRY_*` is_it a-b `my.toml` \\*"
    )


def test_code_is_not_cut_at_its_blanks() -> None:
    filled = fill(f"{'word ' * 22}`some code with blanks` end", "- ", "  ").splitlines()
    assert [line for line in filled if "`some code with blanks`" in line]
    assert max(map(len, filled)) <= 120


def test_a_bar_in_a_cell_is_escaped() -> None:
    assert table(("a", "b"), [("x|y", "")]).splitlines()[2] == "| x\\|y | |"


def test_a_paragraph_ends_where_the_next_word_would_have_fitted() -> None:
    full = ("word " * 24).strip()[:112] + "."
    assert list(split_paragraphs([full, "reallylong goes on.", "New one."])) == [
        f"{full} reallylong goes on.",
        "New one.",
    ]


def test_a_file_without_a_head_is_named(tmp_path: Path) -> None:
    (tmp_path / "nameless.sql").write_text("create view x as select 1;\n")
    with pytest.raises(ValueError, match=r"nameless\.sql has no head"):
        read_head(tmp_path / "nameless.sql")
