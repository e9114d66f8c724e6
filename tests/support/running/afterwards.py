"""What happens in the middle of the product's work, right after one of its functions."""

from collections.abc import Callable
from typing import Any

import pytest


def act_after(monkeypatch: pytest.MonkeyPatch, module: Any, function: str, act: Callable[[], object]) -> None:
    """Act each time that a function of a module has come to its end."""
    really = getattr(module, function)

    def call(*arguments: Any, **more: Any) -> Any:
        found = really(*arguments, **more)
        act()
        return found

    monkeypatch.setattr(module, function, call)
