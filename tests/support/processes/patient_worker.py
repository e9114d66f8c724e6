"""Workers with as much time as they need to release their batches, as on a busy machine."""

from pathlib import Path

TAKE_YOUR_TIME = """
from datetime import timedelta
from rowferry_worker import daemon
from rowferry_worker.batch import context
daemon.RELEASE_TIMEOUT = context.TAKE_BACK_WITHIN = timedelta(seconds=100)
"""


def patient(folder: Path, *also: str) -> dict[str, str]:
    """Return what a worker must find in its environment so that it ends only once all was given back.

    `also`: what else it has to run before all else.
    """
    hook = folder / "patient"
    hook.mkdir(exist_ok=True)
    (hook / "sitecustomize.py").write_text("".join([TAKE_YOUR_TIME, *also]))
    return {"PYTHONPATH": str(hook)}
