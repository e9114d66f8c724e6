"""Pages in a real browser. `make test-pages` installs what it takes; where that is not here, the tests are skipped."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

BROWSER = Path(__file__).parent / "browser"
SERIOUS = {"serious", "critical"}
"""The faults that axe-core may not find."""

SIZES = [(width, scheme) for width in (375, 800, 1600) for scheme in ("light", "dark")]
"""How look.mjs looks at each page."""


def run_browser(script: str, *arguments: str) -> dict[str, Any]:
    """Return what a script of tests/browser prints; its first argument is Chromium's path."""
    node, chromium = shutil.which("node"), shutil.which("chromium") or shutil.which("chromium-browser")
    if not (node and chromium and (BROWSER / "node_modules").is_dir()):
        pytest.skip("Node.js, Chromium or tests/browser/node_modules is not here: run `make test-pages`")
    command = [node, str(BROWSER / script), chromium, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def look(folder: Path, page: Path) -> dict[str, Any]:
    """Return what a browser finds in a page; screenshots and the PDF are in the folder."""
    return run_browser("look.mjs", str(folder), page.as_uri())


def check_look(one: dict[str, Any]) -> None:
    """Hold a look at a page against what every reader needs: nothing on the console, no serious fault, no overflow."""
    where = f"{one['url']}, {one['width']} px, {one['scheme']}"
    assert one["said"] == [], where
    assert one["scroll"] <= one["client"] == one["width"], where
    assert [fault for fault in one["faults"] if fault["impact"] in SERIOUS] == [], where
