"""The critical modules, and the mutants of each: `modules.toml`, `named.toml`, `equivalent.toml`."""

import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutants import sql_operators
from mutants.mutant import Mutant, digest

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Module:
    """Files that are mutated, with the tests that are to notice."""

    name: str
    root: Path
    files: tuple[str, ...]
    tests: tuple[str, ...]
    """Files of tests that call the code in their own process, or in the database."""
    processes: tuple[str, ...] = ()
    """Files of tests that start processes which run the code: what they reach is not known, so all of them run."""

    @property
    def all_tests(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.tests, *self.processes)))

    def digest(self) -> str:
        """Return what changes with the module's code or with its tests."""
        return digest(*(self.root / path for path in (*self.files, *self.all_tests)))


def read_modules(root: Path, listed: Path = HERE / "modules.toml") -> list[Module]:
    """Return the listed modules; raises ValueError where a pattern finds no file."""
    content: dict[str, dict[str, list[str]]] = tomllib.loads(listed.read_text(encoding="utf-8"))
    return [
        Module(name, root, *(_find(root, entry.get(key, [])) for key in ("files", "tests", "processes")))
        for name, entry in content.items()
    ]


def _find(root: Path, patterns: list[str]) -> tuple[str, ...]:
    """Return the files of the patterns; what follows a `!` is taken out again."""
    found: dict[str, None] = {}
    for pattern in patterns:
        paths = [str(path.relative_to(root)) for path in sorted(root.glob(pattern.removeprefix("!")))]
        if not paths:
            raise ValueError(f"{pattern} is not in this checkout: correct modules.toml")
        for path in paths:
            if pattern.startswith("!"):
                found.pop(path, None)
            elif not path.endswith("__init__.py"):
                found[path] = None
    return tuple(found)


def list_mutants(module: Module, named: Path = HERE / "named.toml") -> Iterator[Mutant]:
    """Yield the named mutants of a module, then what the operators make of its files."""
    yield from list_named(module, named)
    for path in module.files:
        if path.endswith(".sql"):
            yield from sql_operators.list_mutants(module.root, path)
        else:
            from mutants import python_operators  # noqa: PLC0415 - mutmut is not installed everywhere

            yield from python_operators.list_mutants(module.root, path)


def list_named(module: Module, named: Path) -> Iterator[Mutant]:
    """Yield the mutants that somebody wrote down; raises ValueError where the code that one changes is gone."""
    content: dict[str, Any] = tomllib.loads(named.read_text(encoding="utf-8")) if named.exists() else {}
    for entry in content.get("mutant", ()):
        if entry["path"] not in module.files:
            continue
        text = (module.root / entry["path"]).read_text(encoding="utf-8")
        if text.count(entry["before"]) != 1:
            raise ValueError(f"{entry['path']} has not one `{entry['before']}`: correct named.toml")
        start = text.index(entry["before"])
        line = text.count("\n", 0, start) + 1
        yield Mutant(
            path=entry["path"],
            line=line,
            last_line=line + entry["before"].count("\n"),
            column=start - text.rfind("\n", 0, start),
            operator="named",
            before=entry["before"],
            after=entry["after"],
            source=text.splitlines()[line - 1].strip(),
            write=lambda text=text, entry=entry: text.replace(entry["before"], entry["after"]),
        )


def choose_sample(mutants: list[Mutant], count: int | None, seed: str) -> list[Mutant]:
    """Return all named mutants and `count` others; a larger count continues a smaller one of the same seed."""
    named = [mutant for mutant in mutants if mutant.operator == "named"]
    others = [mutant for mutant in mutants if mutant.operator != "named"]
    if count is None:
        return [*named, *others]
    random.Random(seed).shuffle(others)  # noqa: S311 - chooses tests, no secrets
    return [*named, *others[:count]]


def read_equivalents(listed: Path = HERE / "equivalent.toml") -> dict[tuple[str, str, str, str], str]:
    """Return the reason of each equivalent mutant by path, line of code, and what stands there before and after."""
    content: dict[str, Any] = tomllib.loads(listed.read_text(encoding="utf-8")) if listed.exists() else {}
    return {
        (entry["path"], entry["line"], entry["before"], entry["after"]): entry["reason"]
        for entry in content.get("mutant", ())
    }
