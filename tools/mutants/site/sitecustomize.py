"""Lets a process that a test has started run the mutant too: `make mutants` puts this folder on PYTHONPATH.

ROWFERRY_TEST_MUTANT names a module, its file and the mutated text of it; ROWFERRY_TEST_MUTANT_SQL a folder in place of
sql/.
"""

import importlib.abc
import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType


class MutantLoader(SourceFileLoader):
    """Loads a module from its file, but with the text of the mutant."""

    def __init__(self, name: str, path: str, text: Path) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        del fullname
        return compile(self._text.read_bytes(), self.path, "exec", dont_inherit=True)


class SqlLoader(SourceFileLoader):
    """Loads the module that finds the SQL files, and has it find them elsewhere."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        folder = Path(os.environ["ROWFERRY_TEST_MUTANT_SQL"])
        module.sql_folder = lambda: folder  # type: ignore[attr-defined]


class Finder(importlib.abc.MetaPathFinder):
    """Finds the mutated module before any other finder does."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        del target
        name, _, files = os.environ.get("ROWFERRY_TEST_MUTANT", "").partition("=")
        sql = os.environ.get("ROWFERRY_TEST_MUTANT_SQL")
        if fullname == name:
            file, _, text = files.partition("=")
            loader = MutantLoader(fullname, file, Path(text))
        elif fullname == "rowferry.db.statements" and sql:
            found = PathFinder.find_spec(fullname, path)  # type: ignore[arg-type]
            loader = SqlLoader(fullname, str(found.origin)) if found else None
        else:
            return None
        return importlib.util.spec_from_loader(fullname, loader, is_package=None) if loader else None


sys.meta_path.insert(0, Finder())
