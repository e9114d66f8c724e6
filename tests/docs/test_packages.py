"""What a reader of the tree meets: packages that one can look over."""

from collections import Counter

import pytest

from support.docs.doc_pages import ROOT

pytestmark = pytest.mark.texts

FOLDERS = ("rowferry", "enqueue", "worker", "exporter", "cli", "queues", "lab")
MOST_MODULES = 14


def test_no_package_has_more_modules_than_one_can_look_over() -> None:
    modules = Counter(
        path.parent.relative_to(ROOT)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "__init__.py"
    )
    assert len(modules) > 40, "a test without a subject cannot fail"
    assert {str(package): number for package, number in modules.items() if number > MOST_MODULES} == {}
