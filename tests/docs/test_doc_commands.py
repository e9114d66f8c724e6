"""Commands in the docs exist with the options that they are given, and each command and option is explained."""

import re

import pytest

from references.commands import write_man_pages
from rowferry_cli.command import name_variable
from support.docs.command_line import find_command, list_commands, list_make_targets, list_options, parse_command
from support.docs.doc_pages import ROOT, SHELLS, list_code, read_blocks, read_table

pytestmark = pytest.mark.texts

COMMANDS = ROOT / "docs" / "commands.md"

SHELL_WORDS = {
    *(".", "cd", "chmod", "cp", "curl", "docker", "doctl", "export", "git", "install", "kill", "kubectl", "mkdir"),
    *(
        "createdb",
        "pg_dump",
        "pg_restore",
        "pip",
        "promtool",
        "psql",
        "python3",
        "sha256sum",
        "ssh",
        "systemctl",
        "tar",
    ),
}
"""Commands of others that the docs may use."""


def check_command(program: str, words: list[str], targets: set[str]) -> None:
    if program == "rowferry":
        parse_command(words)
    elif program == "make":
        assert {word for word in words if "=" not in word} <= targets, words
    elif "/" in program:
        assert (ROOT / program).exists() or program.startswith("."), program
    else:
        assert program in SHELL_WORDS, f"{program} is not known to the tests of the docs"


def test_every_command_in_a_block_exists(subtests: pytest.Subtests) -> None:
    blocks, targets = read_blocks(*SHELLS), list_make_targets()
    assert len(blocks) > 50, "a test without a subject cannot fail"
    for block in blocks:
        for program, *words in block.commands:
            with subtests.test(f"{block} {program}"):
                check_command(program, words, targets)


def test_every_command_in_the_prose_exists(subtests: pytest.Subtests) -> None:
    commands, targets = list_commands(), list_make_targets()
    for page, code in list_code():
        match code.split():
            case ["rowferry", name, *words] if re.fullmatch("[a-z]+", name):
                with subtests.test(f"{page.relative_to(ROOT)}: {code}"):
                    assert name in commands
                    known = {option for parameter in find_command(name).params for option in parameter.opts}
                    assert {word for word in words if word.startswith("-")} <= known | {"--help"}
            case ["make", *words]:
                with subtests.test(f"{page.relative_to(ROOT)}: {code}"):
                    assert {word for word in words if re.fullmatch("[a-z]+", word)} <= targets
            case _:
                pass


def test_every_command_has_its_place_in_the_docs() -> None:
    assert {
        row[0].strip("`").removeprefix("rowferry ") for row in read_table(COMMANDS, "Commands and exit statuses")
    } == set(list_commands())


def test_the_variables_that_follow_no_rule_are_all_named() -> None:
    told = {row[0].strip("`"): row[1].strip("`") for row in read_table(COMMANDS, "Set options")}
    options = [(name, option) for name in list_commands() for option in list_options(name) if not option.hidden]
    assert told == {
        option.opts[-1]: option.envvar
        for name, option in options
        if option.envvar != name_variable(name, option.opts[-1])
    }


def test_every_command_has_a_man_page_with_all_its_options(subtests: pytest.Subtests) -> None:
    pages = {page: text for page, _, text in write_man_pages("https://docs.example")}
    for name in list_commands():
        assert f"**rowferry-{name}**(1)" in pages["rowferry"]
        for option in [option for option in list_options(name) if not option.hidden]:
            with subtests.test(f"{name} {option.opts[-1]}"):
                assert re.search(rf"^  .*{option.opts[-1]}\b", pages[f"rowferry-{name}"], re.MULTILINE)
