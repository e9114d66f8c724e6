"""Goes on in a copy of the supervisor, which has imported all that a worker needs, instead of in a new interpreter."""

import atexit
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial

Work = Callable[[], int]
"""Does what the command of a process does, and returns its exit status."""


def instead_of_exec(work: Work, environment: Mapping[str, str]) -> Callable[[], None] | None:
    """Return what subprocess.Popen is to call in its child: it does the work and ends, so that no exec comes.

    None where a copy cannot go on: another thread may hold a lock, and system libraries other than Linux's may not
    outlive a fork.
    """
    if sys.platform != "linux" or len(os.listdir("/proc/self/task")) > 1:  # noqa: PTH208 - those of libraries too
        return None
    return partial(_go_on, work, environment, _list_files())


def _go_on(work: Work, environment: Mapping[str, str], files: Collection[int]) -> None:
    """Do the work with no other files than those: subprocess waits for the end of one that it has opened."""
    status = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # first: the supervisor sends none before that file is closed
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for file in _list_files().difference(files):
            os.close(file)
        atexit._clear()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - the supervisor's, which may remove folders
        os.environ.clear()
        os.environ.update(environment)
        status = work()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - the end of a process
        traceback.print_exc()
    finally:
        try:
            atexit._run_exitfuncs()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as an interpreter's end does
            logging.shutdown()
            sys.stdout.flush()
        finally:
            os._exit(status)


def _list_files() -> set[int]:
    """Return the numbers of the open files of this process."""
    found: set[int] = set()
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - names are what is wanted
        with suppress(OSError):  # the folder itself, which was open
            os.fstat(int(name))
            found.add(int(name))
    return found
