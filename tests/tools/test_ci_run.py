"""What .ci/run prints and how it ends: red if any step is, with the seconds of each and all that did not run."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.checkout import ROOT

MAKE = """#!/bin/sh
case $1 in
test-versions)
    mkdir -p .tools/matrix
    echo 'Python 3.12 and PostgreSQL 14: passed in 3 s' >.tools/matrix/summary
    tools/not-run 'PostgreSQL 16' 'there is no mvn here' ;;
test) echo '==== 5 passed in 1.00s ====' ;;
test-all) printf 'NOT RUN: versitygw (there is no go here): 3 tests\\n==== 9 passed, 3 skipped in 1.00s ====\\n' ;;
esac
echo "CI=$CI" >&2
case $1 in '@broken') exit 2 ;; esac
"""
STEPS = (
    *("make servers", "make test", "make check", "make docs", "pages in a browser", "make test-versions"),
    "the rest of the tests",
)
MONDAYS = "make test-hosts"
NOT_ROOT = "#!/bin/sh\necho 1000\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with .ci/run and what it calls, whose `make`, browser, account and day (Monday) are fakes."""
    for name in (".ci/run", "tools/not-run"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    write(tmp_path / "tools/install-browser", "#!/bin/sh\nexit 1\n")
    write(tmp_path / "fakes/id", NOT_ROOT)
    write(tmp_path / "fakes/date", "#!/bin/sh\necho 1\n")
    write(tmp_path / "fakes/make", MAKE)
    return tmp_path


def write(path: Path, script: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)


def run(checkout: Path, broken: str = "none", script: str = MAKE) -> tuple[int, list[str], str]:
    """Run it, with one target of make broken; return its exit status, its lines on standard output, and its errors."""
    write(checkout / "fakes/make", script.replace("@broken", broken))
    environment = {"PATH": f"{checkout / 'fakes'}:/usr/local/bin:/usr/bin:/bin"}
    done = subprocess.run(
        [checkout / ".ci/run"], env=environment, capture_output=True, text=True, timeout=150, check=False
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.mark.by_day("check")
@pytest.mark.parametrize("broken", ["servers", "test", "check", "docs", "test-versions", "test-all", "test-hosts"])
def test_one_failed_step_makes_the_run_fail_and_the_others_run_all_the_same(broken: str, checkout: Path) -> None:
    status, lines, _ = run(checkout, broken)
    assert status == 1
    step = {"test-all": STEPS[-1], "test-hosts": f"in turn: {MONDAYS}"}.get(broken, f"make {broken}")
    assert [line.split(" s  ")[1] for line in lines if line.endswith(": FAILED")] == [f"{step}: FAILED"]
    assert len([line for line in lines if line.endswith(": passed")]) == len(STEPS)
    assert lines[-1] == "==== 9 passed, 3 skipped in 1.00s ===="


def test_the_limits_of_all_steps_together_are_below_85_minutes() -> None:
    lines = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    limits = [int(line.partition("=")[2]) for line in lines if line.partition("=")[0].endswith("_LIMIT")]
    assert len(limits) == 9
    assert sum(limits) <= 85 * 60


def test_each_day_of_the_week_has_a_target_in_turn() -> None:
    """Of the Makefile, each another one."""
    _, _, script = (ROOT / ".ci/run").read_text(encoding="utf-8").partition("list_turns() {")
    turns = re.findall(r"^    (make ([a-z-]+).*)$", script.partition("}\n")[0], re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert len({target for _, target in turns}) == 7
    assert all(f"\n{target}:" in makefile for _, target in turns)
