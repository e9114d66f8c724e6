"""Puts a mutant where the tests find it: into functions that are loaded already, and into the database's template."""

import gc
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

FOLDERS = ("cli", "enqueue", "exporter", "lab", "queues", "worker")
"""Folders of the checkout whose packages are imported without them."""


def find_module_name(path: str) -> str:
    """Return the name by which a file of the checkout is imported."""
    parts = list(Path(path).with_suffix("").parts)
    return ".".join(parts[1:] if parts[0] in FOLDERS else parts)


def list_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a file and of all that is defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from list_codes(constant)


def find_swaps(file: str, before: str, after: str) -> dict[tuple[str, int], CodeType] | None:
    """Return the new code of each function by its old name and line.

    None where the mutant is not within a function: in what the import runs, which has run already.
    """
    codes = [list(list_codes(compile(text, file, "exec", dont_inherit=True))) for text in (before, after)]
    if _run_by_import(codes[0]) != _run_by_import(codes[1]):
        return None
    by_name: list[dict[str, list[CodeType]]] = []
    for each in codes:
        named: dict[str, list[CodeType]] = defaultdict(list)
        for code in each[1:]:
            named[code.co_qualname].append(code)
        by_name.append(named)
    swaps: dict[tuple[str, int], CodeType] = {}
    for name, old in by_name[0].items():
        for code, instead in zip(old, by_name[1].get(name, ()), strict=False):
            if code.co_freevars == instead.co_freevars:
                swaps[name, code.co_firstlineno] = instead
    return swaps


def _run_by_import(codes: list[CodeType]) -> list[tuple[object, ...]]:
    """Return what the import of a file runs: its own code and the bodies of its classes."""
    return [
        (
            code.co_qualname,
            code.co_code,
            code.co_names,
            [each for each in code.co_consts if not isinstance(each, CodeType)],
        )
        for code in codes
        if "__qualname__" in code.co_names or code.co_name == "<module>"
    ]


def swap_code(file: str, swaps: dict[tuple[str, int], CodeType]) -> int:
    """Give each function of a file its new code; return how many there were."""
    count = 0
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename == file:
            instead = swaps.get((each.__code__.co_qualname, each.__code__.co_firstlineno))
            if instead is not None:
                each.__code__ = instead
                count += 1
    return count


def tell_processes(path: str, file: str, text: Path) -> dict[str, str]:
    """Return the variable by which processes that are started import the mutant, whose text is in a file."""
    return {"ROWFERRY_TEST_MUTANT": f"{find_module_name(path)}={file}={text}"}


def copy_sql(root: Path, path: str, text: str, folder: Path) -> Path:
    """Return a copy of sql/, in this folder, that has the mutant."""
    copy = folder / "sql"
    shutil.copytree(root / "sql", copy)
    (copy / Path(path).relative_to("sql")).write_text(text, encoding="utf-8")
    return copy


def use_sql(folder: Path) -> None:
    """Let this process and those that it starts find their SQL in this folder."""
    os.environ["ROWFERRY_TEST_MUTANT_SQL"] = str(folder)
    statements: ModuleType = sys.modules["rowferry.db.statements"]
    statements.sql_folder = lambda: folder  # type: ignore[attr-defined]
