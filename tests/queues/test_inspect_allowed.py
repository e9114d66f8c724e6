"""A plan names a function, and whoever may enqueue writes the plan: only what the host registers or lists is run."""

import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rowferry import functions as allowed
from rowferry.functions import ALLOWED_FUNCTIONS, load_function
from support.entries.migration import Migration
from support.queue.inspected import add, end_processes, run, words_of
from support.queue.plug_in import PlugIn

COUNTING = """
from collections import Counter
from pickle import load
import os


def count_words(stream):
    return {"words": len(stream.read().split())}


class Words:
    count = staticmethod(count_words)
"""


class Trap:
    """Makes a folder where it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.folder),)


@pytest.fixture(autouse=True)
def _look_anew() -> Iterator[None]:
    end_processes()
    yield
    allowed.forget_functions()
    end_processes()


@pytest.fixture
def _counting(plug_in: PlugIn) -> None:
    """The module `counting` is installed, but not registered."""
    (plug_in.folder / "counting.py").write_text(COUNTING)
    allowed.forget_functions()


@pytest.fixture
def site(moto_migration: Migration, _counting: None) -> Migration:
    moto_migration.execute("alter table public.avatars add words text")
    return moto_migration


def use(site: Migration, function: str) -> None:
    site.plan["queue"] = {"inspect": {"columns": {"words": "words"}, "function": function}}
    site.write_plan()


@pytest.mark.parametrize("function", ["pickle:load", "counting:load", "counting:count_words"])
def test_no_stored_plan_runs_what_the_workers_host_has_not_registered(
    site: Migration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    """The enqueuer's environment is the enqueuer's own; the worker's decides."""
    trap = tmp_path / "sprung"
    add(site, 1, pickle.dumps(Trap(trap)))
    use(site, function)
    monkeypatch.setenv(ALLOWED_FUNCTIONS, function)
    site.enqueue(queue="inspect")
    monkeypatch.delenv(ALLOWED_FUNCTIONS)
    allowed.forget_functions()
    ended = site.run("worker", "--until-empty", "--processes", "1")
    assert not trap.exists()
    assert site.verdicts() == ["RELEASED"] * len(site.verdicts())
    assert words_of(site) == {1: None}
    assert f"No package registers the function {function}" in ended.stdout + ended.stderr


def test_check_and_enqueue_say_what_to_do(site: Migration) -> None:
    words = (
        "No package registers the function pickle:load: let one name it in its entry points rowferry.functions, list "
        f"it in {ALLOWED_FUNCTIONS} of the environment, here and for the workers, or correct the plan."
    )
    use(site, "pickle:load")
    add(site, 1, b"body")
    found = site.run_here("check").stdout
    assert words.removesuffix(".") in found, found
    for command in (["enqueue", "--queue", "inspect", "--yes"], ["run", "inspect", "--yes"]):
        done = site.run_here(*command)
        assert (done.returncode, done.stderr) == (2, f"rowferry: {words}\n")
    assert site.batches() == []


def test_a_function_that_a_package_registers_is_run(site: Migration, plug_in: PlugIn) -> None:
    plug_in.install("counting", {"words": "counting:count_words"}, group=allowed.GROUP)
    use(site, "counting:count_words")
    add(site, 1, b"one two")
    assert run(site) == {"migrated": 1}
    assert words_of(site) == {1: "2"}


LISTED = {
    "counting": "counting:count_words",
    "others, counting:count_words": "counting:count_words",
    "counting:Words.count": "counting:Words.count",
}
"""What is listed, and a function that may be loaded then."""
UNLISTED = ("counting:load", "counting:os.mkdir", "counting:Counter", "pickle:load")
"""What a listed module has imported, or another module has."""


@pytest.mark.usefixtures("_counting")
def test_a_listed_module_lists_what_it_defines_and_nothing_that_it_imports(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for listed, name in LISTED.items():
        monkeypatch.setenv(ALLOWED_FUNCTIONS, listed)
        with subtests.test(listed):
            assert callable(load_function(name))
    monkeypatch.setenv(ALLOWED_FUNCTIONS, "counting")
    for name in UNLISTED:
        with subtests.test(name), pytest.raises(allowed.MigrationFault, match=f"{name} is not among those that"):
            load_function(name)


@pytest.mark.usefixtures("_counting")
def test_a_list_takes_the_place_of_what_is_registered(plug_in: PlugIn, monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in.install("counting", {"words": "counting:count_words"}, group=allowed.GROUP)
    monkeypatch.setenv(ALLOWED_FUNCTIONS, "others")
    with pytest.raises(allowed.MigrationFault, match="is not among those"):
        load_function("counting:count_words")
