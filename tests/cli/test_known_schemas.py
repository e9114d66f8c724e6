"""The schemas that are known by name are valid, and the plans that they become migrate the corpus of applications."""

import os
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from unittest.mock import patch

import pytest

from corpus.active_storage.project import ActiveStorage
from corpus.application import Application
from corpus.discourse.project import Discourse
from corpus.gitlab.project import GitLab
from corpus.mastodon.project import Mastodon
from corpus.nextcloud.project import Nextcloud
from corpus.project import Project
from corpus.shop.project import Shop
from corpus.shrine.project import Shrine
from corpus.wagtail.project import Wagtail
from corpus.zulip.project import Zulip
from rowferry.plan_file import parse_plan
from rowferry_cli.discover.known import list_names, read_known
from support.docs.doc_pages import ROOT, read_blocks
from support.entries.discovering import Discovering, on_moto
from support.processes.cli import well
from support.queue.at_work import at_work
from torture.oracle import Oracle

PAGE = ROOT / "docs" / "discover.md"
UPLOADS = 10
PROJECTS: dict[str, type[Project]] = {
    project.name: project
    for project in (ActiveStorage, Discourse, GitLab, Mastodon, Nextcloud, Shop, Shrine, Wagtail, Zulip)
}
RECOGNISED = {
    "active_storage": "active-storage",
    **{name: name for name in ("discourse", "gitlab", "mastodon", "nextcloud", "wagtail", "zulip")},
}
"""The projects of the corpus that --discover knows, by the name of their schema."""

Fill = Callable[[str], tuple[Discovering, Application]]


@pytest.fixture
def fill(found: Discovering) -> Iterator[Fill]:
    """Make the database and the legacy bucket of a project of the corpus."""
    with ExitStack() as until:

        def make(name: str) -> tuple[Discovering, Application]:
            project = PROJECTS[name]()
            found.execute((project.folder / "schema.sql").read_text())
            application = until.enter_context(closing(Application(found.dsn, project, found.legacy, Oracle())))
            application.fill(UPLOADS)
            return found, application

        yield make


def test_a_known_schema_is_valid_and_in_the_docs(subtests: pytest.Subtests) -> None:
    assert set(RECOGNISED.values()) <= set(list_names())
    for name in list_names():
        with subtests.test(name):
            known = read_known(name)
            assert known.name == name
            assert known.versions
            assert known.source
            assert known.entries or known.any_column
            assert f"| `{name}` | " in PAGE.read_text()


@on_moto
@pytest.mark.by_day("shrine-*")  # --discover does not know it by name
@pytest.mark.parametrize("name", PROJECTS)
def test_the_discovered_plan_migrates_every_object_of_an_application(name: str, fill: Fill) -> None:
    found, application = fill(name)
    assert ("This is " in well(found.discover()).stdout) == (name in RECOGNISED)
    complete(found)

    well(found.run("check"))
    well(found.run("enqueue", "--yes"))
    with patch.dict(os.environ, found.environment), at_work() as take_turn:
        while take_turn():
            pass
    for row_id, row in application.rows.items():
        for role, key in row.objects.items():
            assert found.production.read(key) == application.bodies[key], (row_id, role, key)


@pytest.mark.by_day("discourse", "nextcloud")
@pytest.mark.parametrize("name", RECOGNISED)
def test_a_schema_that_is_named_is_the_one_that_is_recognised(name: str, fill: Fill) -> None:
    found, _ = fill(name)
    told = found.find_json()
    assert told["schemas"] == [RECOGNISED[name]]
    assert found.find_json("--for", RECOGNISED[name])["entries"] == told["entries"]


def test_the_urls_of_discourse_lead_to_the_production_bucket(fill: Fill) -> None:
    found, _ = fill("discourse")
    for entries in found.find_entries("--for", "discourse"):
        assert entries["from"] == "//old-uploads.s3.dualstack.us-east-1.amazonaws.com/"
        assert entries["to"].startswith("//new-media.")
        assert (entries["legacy_object"], entries["production_object"]) == ("", "")


def test_the_state_column_of_active_storage_is_moved_by_each_service_that_it_names(fill: Fill) -> None:
    found, _ = fill("active_storage")
    (blobs,) = found.find_entries("--for", "active-storage")
    assert blobs["moved"] == {"service_name": ["amazon", "production"]}
    assert "rows" not in blobs
    text = found.plan_path.read_text()
    assert 'Write what the application calls the new bucket in the place of "production".' in text
    assert "config/storage.yml" in text
    found.plan_path.unlink()
    found.execute("update active_storage_blobs set service_name = 'mirror' where id % 3 = 0")
    blobs = found.find_entries("--for", "active-storage")
    moved = [{"service_name": ["amazon", "production"]}, {"service_name": ["mirror", "production_mirror"]}]
    assert [one["moved"] for one in blobs] == moved
    complete(found)
    well(found.run("check"))


def test_a_schema_of_ones_own_is_a_file(fill: Fill) -> None:
    found, _ = fill("shop")
    (text,) = [block.text for block in read_blocks("text", pages=[PAGE]) if "[[entries]]" in block.text]
    (found.folder / "shop.toml").write_text(text + 'note = "Hand-outs."\n')
    (entries,) = found.find_entries("--for", "./shop.toml")
    assert (entries["table"], entries["where"]) == ("public.product_files", "title <> 'draft'")
    assert "# Hand-outs." in found.plan_path.read_text()


def complete(found: Discovering) -> None:
    """Name the test's own production bucket."""
    text = found.plan_path.read_text().replace('bucket = "new-media"', f'bucket = "{found.production.bucket}"')
    found.plan_path.write_text(text)
    parse_plan(tomllib.loads(text), "as written")
