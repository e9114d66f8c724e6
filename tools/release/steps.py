"""Runs commands: each as a step with one line, bounded in time, its output shown when it fails."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON = Path(sys.executable)
"""The interpreter of the environment that has the tools of a release."""
OWN = ("ROWFERRY_", "DATABASE_URL", "PG", "PYTHON", "AWS_", "MAKE", "MFLAGS")
"""Beginnings of the variables of this shell that no step may see."""


class StepFailed(Exception):
    """A command has failed or took too long."""


def step(
    message: str, *command: object, seconds: int = 300, cwd: Path = ROOT, environment: dict[str, str] | None = None
) -> None:
    """Run a command through tools/step. Raises StepFailed, also after `seconds`; then nothing of it runs on."""
    sys.stdout.flush()
    words = [str(ROOT / "tools" / "step"), message, *map(str, command)]
    with subprocess.Popen(words, cwd=cwd, env=clean_environment(environment or {}), start_new_session=True) as process:
        try:
            status = process.wait(seconds)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise StepFailed(f"{message}: took more than {seconds} s.") from None
            raise
    if status:
        raise StepFailed(f"{message}: failed.")


def ask(*command: object, seconds: int = 60, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command that answers at once, and return its answer, whatever its status. Raises StepFailed."""
    words = list(map(str, command))
    try:
        return subprocess.run(
            words, cwd=cwd, env=clean_environment({}), capture_output=True, text=True, timeout=seconds, check=False
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise StepFailed(f"{words[0]} gave no answer: {error}.") from None


def clean_environment(environment: dict[str, str]) -> dict[str, str]:
    """Return the variables of this process without those of rowferry, Python and make, and with those given."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    return {**kept, **quiet, **environment}
