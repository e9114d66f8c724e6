"""What the docs say is so: every command, path, link, statement and plan in them is tried."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import click
import psycopg
import pytest
from psycopg import sql

from bench.headlines import HEADLINES
from bench.page import find_answer, read_results, write_number
from rowferry.keys import map_text
from rowferry.plan import (
    CannedAcl,
    DatabaseLimits,
    Encryption,
    Entries,
    LegacySide,
    MigrationSettings,
    ObjectPrefix,
    ProductionSide,
    QueueSettings,
    Side,
)
from rowferry.plan_file import parse_plan
from rowferry.s3.credentials import _name_variables
from rowferry_cli import cli
from rowferry_cli.command import name_variable
from support.docs.doc_pages import (
    PAGES,
    ROOT,
    SHELLS,
    Block,
    read_anchors,
    read_blocks,
    read_code,
    read_links,
    read_plan_document,
    read_section,
    read_table,
)
from support.docs.statements import split_statements
from support.entries.key_forms import form_of_key, production_key
from support.entries.migration import Migration
from support.processes.processes import DEADLINE

README = ROOT / "README.md"
FIRST_MIGRATION = ROOT / "docs" / "first-migration.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
PLAN = ROOT / "docs" / "plan.md"
FORMS = ROOT / "docs" / "forms.md"
RUNNING = ROOT / "docs" / "running.md"
WORKERS = ROOT / "docs" / "workers.md"
PERMISSIONS = ROOT / "docs" / "permissions.md"
COOK_BOOK = ROOT / "docs" / "sql.md"
"""Has tests of its own, with a queue in the state that each recipe is for."""

TREES = (
    "rowferry",
    "enqueue",
    "worker",
    "cli",
    "exporter",
    "lab",
    "sql",
    "tests",
    "tools",
    "docs",
    "requirements",
    "dashboards",
    ".ci",
)
SHELL_WORDS = {
    ".",
    "cd",
    "cp",
    "curl",
    "docker",
    "doctl",
    "export",
    "git",
    "install",
    "kill",
    "kubectl",
    "mkdir",
    "pip",
    "promtool",
    "psql",
    "python3",
    "sha256sum",
    "ssh",
    "systemctl",
    "tar",
}
"""Commands of others that the docs may use."""

PATH = re.compile(rf"(?:\./)?(?:{'|'.join(map(re.escape, TREES))})/[\w.*/{{}}-]*")
FILE_NAME = re.compile(r"[\w-]+\.(?:py|sql|toml|md|txt)")
VARIABLE = re.compile(r"\b(?:ROWFERRY_[A-Z_]*[A-Z]|DATABASE_URL(?:_FILE)?)\b")

OWN_FILES = {"rowferry.toml", "look.py"}
"""Names of files that are the reader's own, or an example's."""


def ids(things: list[Any]) -> list[str]:
    return [str(thing.relative_to(ROOT)) if isinstance(thing, Path) else str(thing) for thing in things]


def each_page() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", PAGES, ids=ids(PAGES))


def each_block(*languages: str, pages: list[Path] = PAGES) -> pytest.MarkDecorator:
    blocks = read_blocks(*languages, pages=pages)
    assert blocks, "a test without a subject cannot fail"
    return pytest.mark.parametrize("block", blocks, ids=ids(blocks))


def parse_command(words: list[str]) -> None:
    """Have click parse a command line without running it. Raises click.UsageError for what it does not know."""
    context = click.Context(cli, info_name="rowferry")
    for word in words:
        # These end the parsing as soon as click meets them.
        if word in {"--help", "-h", "--version"}:
            return
    name, command, rest = cli.resolve_command(context, words)
    assert command is not None
    command.make_context(name, rest, parent=context)


def list_make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


# Commands


@each_block(*SHELLS)
def test_every_command_in_a_block_exists(block: Block) -> None:
    for program, *words in block.commands:
        if program == "rowferry":
            parse_command(words)
        elif program == "make":
            assert {word for word in words if "=" not in word} <= list_make_targets(), words
        elif "/" in program:
            assert (ROOT / program).exists() or program.startswith("."), program
        else:
            assert program in SHELL_WORDS, f"{program} is not known to the tests of the docs"


@each_page()
def test_every_command_in_the_prose_exists(page: Path) -> None:
    for code in read_code(page):
        match code.split():
            case ["rowferry", name, *words] if re.fullmatch("[a-z]+", name):
                assert name in list_commands(), code
                known = {option for parameter in find_command(name).params for option in parameter.opts}
                assert {word for word in words if word.startswith("-")} <= known | {"--help"}, code
            case ["make", *words]:
                assert {word for word in words if re.fullmatch("[a-z]+", word)} <= list_make_targets(), code
            case _:
                pass


def list_commands() -> list[str]:
    return cli.list_commands(click.Context(cli))


def find_command(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def test_every_command_has_its_place_in_the_docs() -> None:
    assert {
        row[0].strip("`").removeprefix("rowferry ") for row in read_table(RUNNING, "Commands and exit statuses")
    } == set(list_commands())


def list_options(name: str) -> list[click.Option]:
    return [parameter for parameter in find_command(name).params if isinstance(parameter, click.Option)]


def test_the_variables_that_follow_no_rule_are_all_named() -> None:
    told = {row[0].strip("`"): row[1].strip("`") for row in read_table(RUNNING, "Set options")}
    options = [(name, option) for name in list_commands() for option in list_options(name) if not option.hidden]
    assert told == {
        option.opts[-1]: option.envvar
        for name, option in options
        if option.envvar != name_variable(name, option.opts[-1])
    }


def test_the_options_of_a_worker_are_all_explained() -> None:
    explained = {re.findall(r"--[a-z-]+", row[0])[0]: row[1].strip("`") for row in read_table(WORKERS, "Run a worker")}
    options = [parameter for parameter in find_command("worker").params if isinstance(parameter, click.Option)]
    assert set(explained) == {option.opts[-1] for option in options if not option.is_eager and not option.hidden}
    for option in (one for one in options if not one.hidden):
        default = explained[option.opts[-1]]
        if option.show_default:
            shown = option.default[0] if isinstance(option.default, list | tuple) else option.default
            assert default == (f"{shown:g}" if isinstance(shown, float) else str(shown)), option.name


# Paths, links, names


@each_page()
def test_every_path_exists(page: Path) -> None:
    for code in read_code(page):
        if PATH.fullmatch(code):
            pattern = re.sub(r"\{.*?\}", "*", code.removeprefix("./").rstrip("/"))
            assert list(ROOT.glob(pattern)), f"{code} does not exist"
        elif FILE_NAME.fullmatch(code) and code not in OWN_FILES:
            assert [
                found for tree in (*TREES, ".") for found in (ROOT / tree).glob(f"**/{code}" if tree != "." else code)
            ], f"there is no file {code}"


@each_page()
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in read_links(page):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in read_anchors(target), link


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, new = {README}, {README}
    while new:
        found = {
            (page.parent / link.split("#")[0]).resolve() for page in new for link in read_links(page) if ".md" in link
        }
        folders = {(page.parent / link).resolve() for page in new for link in read_links(page) if link.endswith("/")}
        found |= {page for page in PAGES if page.parent in folders}
        new = found - reached
        reached |= found
    assert set(PAGES) <= reached


@each_page()
def test_every_variable_is_one_that_rowferry_reads(page: Path) -> None:
    sources = "".join(
        path.read_text() for tree in ("rowferry", "queues", "cli", "lab") for path in (ROOT / tree).rglob("*.py")
    )
    known = {"DATABASE_URL", *re.findall(r'"(ROWFERRY_\w+)"', sources)}
    for side in (LegacySide("old"), ProductionSide("new")):
        known |= set(_name_variables(side))
    known |= {f"{name}_FILE" for name in known}
    known |= {str(option.envvar) for name in list_commands() for option in list_options(name)}
    known |= set(re.findall(r"\$\{(ROWFERRY_\w+)", (ROOT / "compose.yaml").read_text()))
    found = set(VARIABLE.findall(page.read_text()))
    families = {name for name in found if f"`{name}_…`" in page.read_text() or f"{name}_*" in page.read_text()}
    assert found - families <= known
    assert all(any(name.startswith(f"{family}_") for name in known) for family in families)


def test_every_word_is_used_as_the_schema_has_it() -> None:
    words = [word for row in read_table(ARCHITECTURE, "The words") for word in re.findall(r"\*\*(\w+)\*\*", row[0])]
    schema = " ".join(path.read_text() for path in (ROOT / "sql").rglob("*.sql"))
    python_only = {"step"}
    missing = [word for word in words if word not in python_only and not re.search(rf"{word}", schema)]
    assert not missing
    modules = " ".join(path.read_text() for path in (ROOT / "worker").rglob("*.py"))
    assert all(word in modules.lower() for word in python_only)


def test_the_outcomes_and_verdicts_of_the_docs_are_those_of_the_schema(database: str) -> None:
    with psycopg.connect(database) as connection:
        query = "select conname, pg_get_constraintdef(oid) from pg_constraint where conname like '%\\_check'"
        checks = dict(connection.execute(query).fetchall())
    rows = {row[0].strip("*"): row[1] for row in read_table(ARCHITECTURE, "The words")}
    outcomes = set(re.findall(r"`(\w+)`", rows["outcome"]))
    assert outcomes == set(re.findall(r"'(\w+)'", checks["entry_failure_outcome_check"])) | {"migrated", "kept"}
    verdicts = set(re.findall(r"'(\w+)'", checks["batch_attempt_verdict_check"]))
    assert set(re.findall(r"`(\w+)`", rows["verdict"])) == verdicts
    told = {row[0].strip("`*") for row in read_table(ARCHITECTURE, "Attempts and the ledger")}
    assert told == verdicts | {"none"}


# Plans


@each_block("toml")
def test_every_plan_is_one(block: Block) -> None:
    parse_plan(read_plan_document(block), str(block))


@pytest.mark.parametrize(
    ("heading", "struct"),
    [
        ("`[migration]`", MigrationSettings),
        ("`[legacy]` and `[production]`", Side),
        ("`[database]`", DatabaseLimits),
        ("`[[entries]]`", Entries),
        ("`[[objects]]`", ObjectPrefix),
        ("`[queue.NAME]`", QueueSettings),
    ],
)
def test_the_reference_of_the_plan_is_complete(heading: str, struct: Any) -> None:
    told = {row[0].strip("`"): row[2] for row in read_table(PLAN, heading)}
    assert list(told) == list(struct.__struct_encode_fields__)
    required = set(struct.__struct_encode_fields__[: len(struct.__struct_fields__) - len(struct.__struct_defaults__)])
    assert {name for name, default in told.items() if default == "required"} == required
    for name, default in zip(reversed(list(told)), reversed(struct.__struct_defaults__), strict=False):
        if default is not None and not hasattr(default, "factory"):
            wanted = list(default) if isinstance(default, tuple) else default
            assert json.loads(told[name].strip("`")) == wanted


def test_what_is_said_of_production_objects_is_complete() -> None:
    rows = read_table(PLAN, "What production objects shall be")
    fields = ProductionSide.__struct_encode_fields__[len(Side.__struct_fields__) :]
    assert [row[0].strip("`") for row in rows] == list(fields)
    told = {row[0].strip("`"): set(re.findall(r'"([\w:-]+)"', f"{row[1]} {row[3]}")) for row in rows}
    assert told["acl"] == {"copy", *get_args(CannedAcl)}
    assert told["encryption"] == set(get_args(Encryption))


def test_the_values_of_transfer_and_addressing_are_all_named() -> None:
    rows = {row[0].strip("`"): row[1] for row in read_table(PLAN, "`[migration]`")}
    rows |= {row[0].strip("`"): row[1] for row in read_table(PLAN, "`[legacy]` and `[production]`")}
    for name, struct in (("transfer", MigrationSettings), ("addressing", Side)):
        assert set(re.findall(r'"(\w+)"', rows[name])) == set(get_args(get_type_hints(struct)[name]))


@pytest.mark.parametrize("row", read_table(FORMS, "Which form a row has"), ids=lambda row: row[0])
def test_the_longer_prefix_wins_as_told(row: list[str]) -> None:
    legacy_prefix, production_prefix, legacy_key, production = (
        "" if cell == "*(empty)*" else cell.strip("`") for cell in row
    )
    entries = Entries("t", "id", "key", legacy_prefix, production_prefix)
    assert form_of_key(legacy_key, entries) == "legacy"
    assert production_key(legacy_key, entries) == production
    assert form_of_key(production, entries) == "production"


def test_a_text_becomes_what_the_page_shows() -> None:
    (block,) = [one for one in read_blocks("toml", pages=[FORMS]) if is_in_section(one, "URLs and other texts")]
    (entries,) = parse_plan(read_plan_document(block), str(block)).entries
    (row,) = read_table(FORMS, "URLs and other texts")
    before, legacy, production, after = (cell.strip("`") for cell in row)
    keys, text = map_text(before, entries)
    assert (keys.legacy, keys.production, text) == (legacy, production, after)


# SQL


@pytest.fixture
def busy_queue(migration: Migration) -> Migration:
    """A migration with batches that are INIT, DONE and ERROR, failures by entry, a live worker and one that died."""
    migration.fill(6)
    migration.add_row(7, "image/lost.png")
    migration.add(8, "other.png")
    migration.production.put("avatar/other.png", b"something else")
    migration.enqueue(batch_size=3)
    migration.work()
    migration.fill(3, start=9)
    migration.enqueue(batch_size=3)
    migration.execute("select rowferry.heartbeat('host:1:a', 'host', 1, '0.1.0', 2, 64, '{migrate}')")
    migration.execute(
        "select rowferry.begin_attempt(id, requeues, 'host:1:a') from rowferry.batch_queue where status = 'INIT'"
    )
    assert migration.statuses() == {"INIT", "DONE", "ERROR"}
    return migration


@pytest.fixture
def roles(database: str) -> Iterator[list[str]]:
    """The roles that the docs grant something to; they belong to the whole server, so they are dropped again."""
    granted = {name for block in read_blocks("sql") for name in re.findall(r"\bto \"?(\w+)\"?;", block.text)}
    with psycopg.connect(database, autocommit=True) as connection:
        for role in granted:
            connection.execute(sql.SQL("create role {}").format(sql.Identifier(role)))
        yield sorted(granted)
        for role in granted:
            connection.execute(sql.SQL("drop owned by {}").format(sql.Identifier(role)))
            connection.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


@each_block("sql", pages=[page for page in PAGES if page != COOK_BOOK])
def test_every_statement_does_something(block: Block, busy_queue: Migration, roles: list[str]) -> None:
    """Each query finds a row, and each change has one to change, in a queue that has some of everything."""
    for statement in split_statements(block.text):
        with psycopg.connect(busy_queue.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            changes_rows = statement.lower().lstrip().startswith(("select", "insert", "update", "delete"))
            assert not changes_rows or cursor.rowcount > 0, statement


def test_requeuing_in_sql_resets_the_rest(busy_queue: Migration) -> None:
    (first, *_) = [block for block in read_blocks("sql", pages=[README]) if "'INIT'" in block.text]
    busy_queue.execute(first.text)
    requeued = [batch for batch in busy_queue.batches() if batch["requeues"]]
    assert requeued
    assert {(batch["status"], batch["attempts"], batch["error"]) for batch in requeued} == {("INIT", 0, None)}


# Permissions


def test_the_grants_in_the_docs_are_among_those_that_rowferry_prints(migration: Migration) -> None:
    (shown,) = read_blocks("sql", pages=[PERMISSIONS])
    migration.write_plan()
    printed = migration.run("init", "--grants", "app_worker", "--for", "worker").stdout
    assert set(split_statements(shown.text)) <= set(split_statements(printed))


@each_block("json")
def test_no_policy_allows_a_delete_but_of_the_probe(block: Block) -> None:
    for statement in json.loads(block.text)["Statement"]:
        actions = {statement["Action"]} if isinstance(statement["Action"], str) else set(statement["Action"])
        assert all(action.startswith("s3:") and "*" not in action for action in actions)
        resource = statement["Resource"].rpartition(":")[2]
        if any("Delete" in action for action in actions):
            assert resource == "sketch-production-s3/rowferry-check-*"
        if resource.startswith("sketch-legacy-s3"):
            assert actions <= {"s3:ListBucket", "s3:GetObject", "s3:GetObjectTagging"}


# The first migration


def test_the_first_migration_runs_as_it_is_written(migration: Migration) -> None:
    """All its blocks but the installation; what is the reader's own, the plan and the settings, is the test's here.

    The database knows nothing of rowferry when it begins.
    """
    migration.execute("drop schema rowferry cascade")
    migration.fill(40)
    migration.add_row(41, "image/lost.png")
    blocks = [
        block
        for block in read_blocks("sh", pages=[FIRST_MIGRATION])
        if not is_in_section(block, "Rehearse with made-up data")
    ]
    install, settings, example, at_once, failed, retry, verify, prepare, work, look, requeue = blocks
    assert "pip install ." in install.text
    assert name_settings(settings) <= set(migration.environment)

    run_block(migration, example)
    assert tomllib.loads(migration.plan_path.read_text())["entries"] == migration.plan["entries"]
    migration.write_plan()

    dry_run, migrate = at_once.text.splitlines()
    assert "Dry run: nothing was written" in run_shell(migration, dry_run)
    assert not migration.execute("select from pg_namespace where nspname = 'rowferry'")

    for block in (prepare, work):
        run_block(migration, block)
    assert "NoSuchKey" in run_block(migration, look)
    assert "NoSuchKey" in run_block(migration, failed)
    assert migration.counts() == {"migrated": 40, "missing": 1}

    migration.legacy.put("image/lost.png", b"found again")
    run_block(migration, requeue)
    run_block(migration, work)
    assert migration.counts() == {"migrated": 41}
    assert "Nothing to enqueue." in run_shell(migration, "rowferry enqueue")

    migration.fill(5, start=100)
    run_shell(migration, migrate)
    migration.add_row(200, "image/lost-too.png")
    run_shell(migration, "rowferry enqueue\nrowferry worker --until-empty")
    migration.legacy.put("image/lost-too.png", b"found again")
    run_block(migration, retry)
    migration.audit()

    run_block(migration, verify)
    assert "avatars" in (migration.folder / "report.html").read_text()


def name_settings(block: Block) -> set[str]:
    """Return the variables that a block exports."""
    return set(re.findall(r"\b[A-Z][A-Z0-9_]+(?==)", block.text))


@pytest.mark.parametrize("page", [README, FIRST_MIGRATION], ids=ids([README, FIRST_MIGRATION]))
def test_migrate_needs_no_other_command_before_it(page: Path, migration: Migration) -> None:
    migration.execute("drop schema rowferry cascade")
    migration.fill(5)
    migration.write_plan()
    (at_once,) = [block for block in read_blocks("sh", pages=[page]) if "rowferry migrate --dry-run" in block.text]
    assert "5 entries in 1 batch would be enqueued" in run_block(migration, at_once)
    assert migration.counts() == {"migrated": 5}
    migration.audit()


# Speed


def test_every_question_of_the_page_of_speed_is_answered_by_a_measurement() -> None:
    results = read_results()
    assert all(find_answer(headline, results) for headline in HEADLINES)
    told = [(row[0], row[1]) for row in read_table(ROOT / "docs" / "speed.md", "How fast is it?")]
    assert told == [(headline.question, find_answer(headline, results)) for headline in HEADLINES]


# The README


def test_the_readme_compares_the_paces_that_were_measured() -> None:
    rows = {row[0]: row[1:] for row in read_table(README, "Why")}
    for what, bench, figure, contestants in (
        (
            "small objects/s, copied within a server",
            "copy",
            "entries_per_second",
            ("rowferry", "rclone", "rclone unchecked", "s5cmd"),
        ),
        (
            "100 MB objects, MB/s, between two servers",
            "stream",
            "megabytes_per_second",
            ("rowferry, 100 MB", "rclone, 100 MB", "rclone unchecked, 100 MB"),
        ),
    ):
        summary = json.loads((ROOT / "bench" / "results" / f"{bench}.json").read_text())["summary"]
        told = re.findall(r"[\d,]*\d", " ".join(rows[what]))
        assert told == [write_number(summary[contestant][figure]["median"]) for contestant in contestants]


def is_in_section(block: Block, heading: str) -> bool:
    return block.text in read_section(block.page, heading)


def run_block(migration: Migration, block: Block) -> str:
    return run_shell(migration, block.text)


def run_shell(migration: Migration, script: str) -> str:
    """Run a script as a reader's shell would, with `y` to every question, and return what it prints."""
    ended = subprocess.run(
        ["sh", "-ec", f'rowferry() {{ {shlex.quote(sys.executable)} -m rowferry_cli "$@"; }}\n{script}'],
        env=migration.environment,
        cwd=migration.folder,
        input="y\n" * 5,
        capture_output=True,
        text=True,
        timeout=DEADLINE.total_seconds(),
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_no_page_speaks_of_what_is_not_there() -> None:
    for page in PAGES:
        assert not re.search(r"\b(TODO|FIXME|TBD|coming soon|not yet implemented)\b|@@", page.read_text()), page
