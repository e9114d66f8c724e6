"""What `rowferry worker --processes` was told, each of its processes is told: no option is forgotten."""

import click
import pytest

from rowferry_cli.work.worker import NOT_FORWARDED, command, forward_options

OTHER: dict[str, list[str]] = {
    "--queue": ["--queue=verify", "--queue=a name, with -- and ="],
    "--log-format": ["--log-format=json"],
    "--metrics-host": ["--metrics-host=0.0.0.0"],
}
"""Values other than the default, where a number would not do."""
OPTIONS = [option for option in command.params if isinstance(option, click.Option)]


def tell(*arguments: str) -> click.Context:
    return command.make_context("worker", list(arguments), resilient_parsing=False)


def choose_another(option: click.Option) -> list[str]:
    """Return arguments that give the option another value than it has by default."""
    name = option.opts[-1]
    if option.is_flag:
        return [name]
    number = (option.default or 1) * 1.5 if isinstance(option.default, float) else 7
    return OTHER.get(name, [f"{name}={number}"])


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: str(option.name))
def test_every_option_reaches_the_processes_or_stays_behind_on_purpose(option: click.Option) -> None:
    told = tell(*choose_another(option))
    assert told.params[option.name] != tell().params[option.name]
    heard = tell(*forward_options(told, but=NOT_FORWARDED))
    assert heard.params == {**told.params, **{name: tell().params[name] for name in NOT_FORWARDED}}


def test_an_option_that_comes_from_the_environment_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWFERRY_LOST_AFTER", "33")
    told = tell()
    monkeypatch.delenv("ROWFERRY_LOST_AFTER")
    assert tell(*forward_options(told, but=NOT_FORWARDED)).params["lost_after"].total_seconds() == 33


def test_what_stays_behind_is_there() -> None:
    assert {option.name for option in OPTIONS} > NOT_FORWARDED
