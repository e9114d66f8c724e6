"""`rowferry plan --discover` lets the user choose what becomes of rows that hold keys."""

import shlex
import tomllib
from typing import Any

import pytest

from support.docs.doc_pages import ROOT, read_blocks
from support.entries.discovering import Discovering, on_moto
from support.processes.cli import refused, well
from support.processes.processes import wait_for
from support.processes.terminal import in_terminal

README = ROOT / "README.md"
SIDES = ("legacy", "production")


@pytest.fixture
def avatars(found: Discovering) -> Discovering:
    """A table of keys like that of the README."""
    found.execute("create table avatars (id bigint primary key, path text, updated_at timestamptz default now())")
    found.insert("avatars", [(n, f"image/u{n}/me.png") for n in range(5)])
    found.put(*[f"image/u{n}/me.png" for n in range(5)])
    return found


MOVED = {"table": "public.avatars", "id": "id", "key": "path", "from": "image/", "to": "avatar/"}


@on_moto
def test_rows_follow_their_objects_to_a_new_prefix(avatars: Discovering) -> None:
    assert avatars.find_entries("--to", "avatar/") == [MOVED]
    plan = avatars.plan_path.read_text()
    assert tomllib.loads(plan)["migration"] == {"name": "avatars"}
    assert "stay" not in plan


def test_nothing_is_chosen_where_nobody_can_be_asked(avatars: Discovering) -> None:
    """A copy that updates no row is not what most people come for."""
    done = avatars.discover("--rows", "move")
    assert (done.returncode, avatars.plan_path.exists()) == (2, False)
    sides = ("--legacy", avatars.url_of(avatars.legacy.bucket), "--production", avatars.url_of("new-media"))
    done = avatars.run("plan", "--discover", *sides)
    assert (done.returncode, avatars.plan_path.exists()) == (2, False)
    assert done.stderr == (
        "rowferry: The rows of public.avatars.path hold keys such as 'image/u0/me.png': add --to with a new prefix, "
        "such as --to production/, and each row follows its object; or add --rows stay, and you switch the application "
        "when all objects are copied.\n"
    )
    assert avatars.find_json()["undecided"] == ["public.avatars.path"]


@pytest.mark.parametrize(("answers", "expected"), [(["image/", "avatar", "avatar/"], MOVED), ([""], None)])
def test_a_person_is_asked_until_the_answer_can_be_meant(
    avatars: Discovering, answers: list[str], expected: dict[str, Any] | None
) -> None:
    sides = ("--legacy", avatars.url_of(avatars.legacy.bucket), "--production", avatars.url_of("new-media"))
    command = ("plan", "--discover", *sides, "--plan", str(avatars.plan_path))
    with in_terminal(*command, size=(150, 24), **avatars.environment) as terminal:
        for number, answer in enumerate(answers, 1):
            wait_for(lambda number=number: terminal.output.count("New prefix for 'image/'") == number)
            terminal.press(f"{answer}\n")
        assert terminal.wait() == 0, terminal.output
    assert "holds keys such as 'image/u0/me.png'" in terminal.output
    assert "or Enter to leave the rows:" in terminal.output, "Enter is the answer, not an empty one in brackets"
    (entries,) = tomllib.loads(avatars.plan_path.read_text())["entries"]
    assert entries == expected or (expected is None and entries["rows"] == "stay")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--to", "image/"], "--to is 'image/': the keys begin with that already"),
        (["--to", "avatar"], "such as avatar/."),
        (["--to", "avatar/", "--rows", "stay"], "choose one"),
    ],
)
def test_a_choice_that_cannot_be_meant_is_one_sentence(avatars: Discovering, arguments: list[str], words: str) -> None:
    done = avatars.discover(*arguments)
    assert (done.returncode, words in done.stderr, done.stderr.count("\n")) == (2, True, 1), done.stderr
    assert not avatars.plan_path.exists()


def test_one_prefix_is_not_given_to_keys_that_begin_differently(avatars: Discovering) -> None:
    """image/1 and document/1 would both become avatar/1."""
    avatars.make("documents", "file text", [(n, f"document/u{n}/me.png") for n in range(5)])
    avatars.put(*[f"document/u{n}/me.png" for n in range(5)])
    assert "two objects could get one key" in refused(avatars.discover("--to", "avatar/"))
    assert avatars.find_entries("--to", "avatar/", "avatars.path") == [MOVED]


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("/image/{}.png", "image/{}.png", ("/image/", "/new/", "image/", "new/")),
        ("image/{}.png", "media/image/{}.png", ("image/", "new/", "media/image/", "media/new/")),
        ("{}.png", "{}.png", ("", "new/", None, None)),
    ],
)
def test_what_stands_before_a_key_stays_there(
    avatars: Discovering, text: str, key: str, expected: tuple[str | None, ...]
) -> None:
    avatars.make("photos", "path text", [(n, text.format(f"p{n}")) for n in range(5)])
    avatars.put(*[key.format(f"p{n}") for n in range(5)])
    (entries,) = avatars.find_entries("--to", "new/", "photos.path")
    assert tuple(entries.get(name) for name in ("from", "to", "legacy_object", "production_object")) == expected


def test_the_readme_ends_in_the_plan_that_it_shows(avatars: Discovering) -> None:
    (block,) = [one for one in read_blocks("sh", pages=[README]) if "plan --discover" in one.text]
    command = shlex.split(block.text[block.text.index("rowferry plan --discover") :].replace("\\\n", " "))
    urls = {"old-uploads": avatars.url_of(avatars.legacy.bucket), "new-uploads": avatars.url_of("new-uploads")}
    well(avatars.run(*[urls.get(word.rpartition("/")[2], word) for word in command[1:]]))
    (shown,) = [tomllib.loads(one.text) for one in read_blocks("toml", pages=[README])]
    written = tomllib.loads(avatars.plan_path.read_text())
    assert written.keys() == shown.keys()
    assert (written["migration"], written["entries"]) == (shown["migration"], shown["entries"])
    assert [written[side].keys() for side in SIDES] == [shown[side].keys() for side in SIDES]


@pytest.mark.parametrize("page", ["README.md", "docs/first-migration.md"])
def test_the_application_of_the_quick_start_finds_objects_by_the_plan_beside_it(page: str) -> None:
    (code,) = read_blocks("python", pages=[ROOT / page])
    plan = next(tomllib.loads(one.text) for one in read_blocks("toml", pages=[ROOT / page]))
    names: dict[str, Any] = {}
    exec(code.text, names)
    (entries,) = plan["entries"]
    found = [names["find_bucket"](f"{entries[prefix]}u1/me.png") for prefix in ("from", "to")]
    assert found == [plan[side]["bucket"] for side in SIDES]
