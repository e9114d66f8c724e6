"""The pages that are written from commands and metrics have all of them, as they are now."""

import re

import click
import pytest

from references import providers_page
from references.commands import write_man_pages
from references.metrics_page import read_labels
from rowferry_exporter.metrics import describe
from rowferry_worker.monitoring import metrics
from support.docs.command_line import list_commands, list_options
from support.docs.doc_pages import ROOT, read_section
from support.screens.known_metrics import known_metrics

pytestmark = pytest.mark.texts

COMMANDS, METRICS, PROVIDERS = (ROOT / "docs" / f"{name}.md" for name in ("commands", "metrics", "providers"))


def list_shown_options(name: str) -> list[click.Option]:
    return [option for option in list_options(name) if not option.hidden]


def test_every_command_is_there_with_all_its_options(subtests: pytest.Subtests) -> None:
    for name in list_commands():
        section = read_section(COMMANDS, f"rowferry {name}")
        for option in list_shown_options(name):
            with subtests.test(f"{name} {option.opts[-1]}"):
                assert f"{option.opts[-1]}" in section
                assert str(option.envvar or "") in section


def test_every_command_has_a_man_page_with_all_its_options(subtests: pytest.Subtests) -> None:
    pages = {page: (line, text) for page, line, text in write_man_pages("https://docs.example")}
    for name in list_commands():
        line, text = pages[f"rowferry-{name}"]
        with subtests.test(name):
            assert line
            assert f"**rowferry-{name}**(1)" in pages["rowferry"][1]
        for option in list_shown_options(name):
            with subtests.test(f"{name} {option.opts[-1]}"):
                assert re.search(rf"^  .*{option.opts[-1]}\b", text, re.MULTILINE)


def test_every_metric_is_there_with_its_labels() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| \w+ \|(.*?)\|", METRICS.read_text("utf-8"), re.MULTILINE))
    assert set(rows) == {re.sub(r"_(bucket|count|sum)$", "", name) for name in known_metrics()}
    families = [*describe(None), metrics.entries, metrics.build_info]
    assert [list(read_labels(family)) for family in families] == [[], ["migration", "queue", "outcome"], ["version"]]
    assert rows["rowferry_entries_total"].split() == ["`migration`", "`queue`", "`outcome`"]


def test_every_provider_is_on_its_page_as_the_data_has_it() -> None:
    """Where this fails: `make references`."""
    assert "\n\n".join(providers_page.write_page()) in PROVIDERS.read_text(encoding="utf-8")
