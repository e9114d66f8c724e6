"""rowferry as the first process of a container, without an init program in front of it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not shutil.which("unshare") or os.geteuid() != 0, reason="only root makes PID namespaces")
def test_the_first_process_of_a_container_obeys_sigterm_in_the_middle_of_anything() -> None:
    """The kernel drops SIGTERM for process 1 unless it has a handler; `docker stop` would then wait and kill."""
    with socket.create_server(("127.0.0.1", 0)) as mute_database:
        url = f"postgresql://nobody@127.0.0.1:{mute_database.getsockname()[1]}/none"
        command = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-m", "rowferry_cli", "init"]
        with subprocess.Popen(command, env={**os.environ, "DATABASE_URL": url}, stdin=subprocess.DEVNULL) as parent:
            waits_for_an_answer, _ = mute_database.accept()
            with waits_for_an_answer:
                first = int(Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text())
                os.kill(first, signal.SIGTERM)
                assert parent.wait(100) == 128 + signal.SIGTERM
