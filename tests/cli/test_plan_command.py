"""`rowferry plan` has an example that works, says a plan in words, and names what is wrong with one."""

import re
import tomllib
from pathlib import Path

import pytest

from rowferry.plan_file import parse_plan, read_plan
from support.checkout import ROOT
from support.processes.cli import Run

EXAMPLE = ROOT / "cli/rowferry_cli/setup/example_plan.toml"


def test_the_example_is_a_plan(run_rowferry: Run, tmp_path: Path) -> None:
    done = run_rowferry("plan", "--example")
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "rowferry.toml").write_text(done.stdout)
    assert read_plan(tmp_path / "rowferry.toml").name == "avatars"


def test_every_key_that_the_example_leaves_out_is_one_that_plans_have_with_its_default() -> None:
    """What stands behind a `#` is what holds where the key is left out, but for those that have no default."""
    short = parse_plan(tomllib.loads(EXAMPLE.read_text()), "as it is")
    document = tomllib.loads(re.sub(r"(?m)^# (?=\w+ = )", "", EXAMPLE.read_text()))
    assert len(document["legacy"]) == 8
    full = parse_plan(document, "with all its keys")
    assert (full.migration.transfer, full.migration.max_attempts, full.legacy.profile) == ("auto", 5, "legacy")
    assert full.migration == short.migration
    assert (full.legacy.region, full.legacy.addressing) == (short.legacy.region_or_default, short.legacy.addressing)


def test_a_plan_is_said_in_words(run_rowferry: Run, tmp_path: Path) -> None:
    (tmp_path / "rowferry.toml").write_text(EXAMPLE.read_text() + 'where = "id > 1"\n')
    assert run_rowferry("plan").stdout.splitlines() == [
        "Migration avatars",
        "  from  s3://sketch-legacy-s3 at AWS, us-east-1 (legacy: only read)",
        "  to    s3://sketch-production-s3 at AWS, us-east-1 (production: written)",
        "  objects: the production server copies them itself; at most 5 attempts per batch",
        "  rows of public.avatars by id, where id > 1",
        "    path: image/…  becomes  avatar/…",
    ]


def test_what_a_plan_says_of_a_queue_is_said_in_words(run_rowferry: Run, tmp_path: Path) -> None:
    tag = '[queue.tag]\nset = {tier = "cold", tenant = {column = "owner"}}\n'
    (tmp_path / "rowferry.toml").write_text(EXAMPLE.read_text() + tag)
    shown = run_rowferry("plan").stdout.splitlines()
    assert [line.strip() for line in shown if "tier" in line] == ["set: tier = cold, tenant = column owner"]


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        (
            'key = "url"\nfrom = "//old/"\nto = "//cdn/"\nlegacy_object = ""\nproduction_object = "u/"\n'
            'encoding = "percent"',
            [
                "url: //old/…  becomes  //cdn/…",
                "the text is percent-encoded; ?… and #… are no part of a key",
                "objects: …  becomes  u/…",
            ],
        ),
        (
            'key = "key"\nfrom = ""\nto = ""\nmoved = { service_name = ["amazon", "r2"], done = [false, true] }',
            [
                "key: every text stays as it is",
                "objects keep their keys",
                "with the objects, service_name becomes 'r2', from 'amazon' and done becomes True, from False",
            ],
        ),
        (
            'key = "data"\npath = "$.versions.*.id"\nfrom = "image/"\nto = "avatar/"',
            ["data at $.versions.*.id: image/…  becomes  avatar/…"],
        ),
        (
            'key = "file"\nfrom = ""\nto = ""\nmoved = { store = [1, 2] }\n'
            "objects = \"'a/' || id\"\noptional = \"'b/' || id\"",
            [
                "file: every text stays as it is",
                "a row's objects are 'a/' || id",
                "and, unless they are missing, 'b/' || id",
                "objects keep their keys",
                "with the objects, store becomes 2, from 1",
            ],
        ),
        (
            'key = "file"\nfrom = "a/"\nto = "a/"\nrows = "stay"\nchanged = "updated_at"',
            [
                "file: every text that begins with a/ stays as it is",
                "objects keep their keys, which begin with a/",
                "rows are never written; later passes take all whose updated_at has changed",
            ],
        ),
    ],
)
def test_every_form_is_said_in_words(run_rowferry: Run, tmp_path: Path, form: str, lines: list[str]) -> None:
    before = EXAMPLE.read_text().partition("[[entries]]")[0]
    (tmp_path / "rowferry.toml").write_text(f'{before}[[entries]]\ntable = "things"\nid = ["a", "b"]\n{form}\n')
    shown = run_rowferry("plan").stdout.splitlines()
    start = shown.index("  rows of things by a, b")
    assert [line.removeprefix("    ") for line in shown[start + 1 :]] == lines


def test_the_direction_is_told_and_no_password_of_an_endpoint(run_rowferry: Run, tmp_path: Path) -> None:
    server = 'bucket = "sketch-legacy-s3"\nendpoint_url = "https://user:hush@s3.example.net"'
    (tmp_path / "rowferry.toml").write_text(EXAMPLE.read_text().replace('bucket = "sketch-legacy-s3"', server))
    shown = run_rowferry("plan").stdout
    assert "  from  s3://sketch-legacy-s3 at https://***@s3.example.net (legacy: only read)\n" in shown
    assert "  to    s3://sketch-production-s3 at AWS, us-east-1 (production: written)\n" in shown
    assert "hush" not in shown
