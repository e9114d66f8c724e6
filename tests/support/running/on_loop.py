"""Tests that are coroutines."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

Arguments = ParamSpec("Arguments")


def on_loop(test: Callable[Arguments, Coroutine[Any, Any, None]]) -> Callable[Arguments, None]:
    """Run a test on an event loop of its own."""

    @wraps(test)
    def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> None:
        asyncio.run(test(*arguments, **named))

    return run
