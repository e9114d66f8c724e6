"""The warm process of one module: pytest with the nearest tests collected, which forks for each mutant.

Run as `python -m mutants.stand JOB`, with the file of a job.
"""

import gc
import os
import sys
from pathlib import Path

import pytest

from mutants import children
from mutants.baseline import run_baseline
from mutants.job import Job, read_job
from mutants.trial import Trial
from mutants.warm_tests import WarmTests

OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "timeout=0")


class Stand:
    """A plugin of pytest that runs the collected tests in its own way."""

    def __init__(self, job: Job, tests: WarmTests) -> None:
        self._job = job
        self._tests = tests

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try the mutants of the job, unless a test fails without one."""
        gc.unfreeze()  # what a conftest has frozen: `swap` has to find the functions
        job = self._job
        if session.testsfailed or not session.items:
            job.tell({"broken": "its tests cannot be collected"})
            return True
        children.adopt_orphans()
        self._tests.start(session.items)
        baseline = run_baseline(job, self._tests)
        if baseline.failed and not job.leaves_out_failing:
            job.tell({"broken": "its tests fail without a mutant", "failed": baseline.failed})
            return True
        job.tell({"passed": len(baseline.seconds), "failed": baseline.failed})
        trial = Trial(job, self._tests, baseline)
        for task in job.tasks:
            job.tell({"place": task.place, **trial.judge(task)})
        return True


def main(path: str) -> int:
    children.end_with_parent()
    job, tests = read_job(Path(path)), WarmTests()
    os.chdir(job.root)
    return int(pytest.main([*OPTIONS, *job.all_tests], plugins=[tests, Stand(job, tests)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
