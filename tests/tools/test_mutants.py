"""`make mutants` finds the modules and tests that pyproject.toml names: mutmut itself passes over a missing one."""

import tomllib

import pytest

from support.checkout import ROOT

pytestmark = pytest.mark.texts


def test_every_module_and_test_that_is_named_exists(subtests: pytest.Subtests) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutmut"]
    for path in [*settings["only_mutate"], *settings["pytest_add_cli_args_test_selection"]]:
        with subtests.test(path):
            assert (ROOT / path).is_file() or (ROOT / "worker" / path).is_file()
