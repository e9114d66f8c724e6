"""Words that were replaced do not come back: each of them has one successor, in code, SQL, logs, metrics and docs."""

import re
import subprocess

import pytest

from support.checkout import ROOT

pytestmark = pytest.mark.texts

REPLACED = {
    r"\b[Jj]ourneys?\b": "copy task, or 'an object's copy'",
    r"\bpassengers?\b|\b_Passenger\b|\bclass Flight\b": "task, CopyScheduler",
    r"\b[Cc]arriers?\b": "copy method",
    r"\bRoutes\b|\bclass Route\b": "MigrationContext, MigrationContextCache",
    r"\bTreatment\b|\bRUN_GENTLY\b": "CrashPolicy, RUN_SLOWLY",
    r"\bstay_alone\b|\bsettled_alone\b|\bclass Company\b": "ReadersWriterLock, exclusive()",
    r"\b[Ll]ookout\b": "SilenceDetector",
    r"\bsign_off\b|\bBEAT_EVERY\b|\bclass Heart\b": "deregister, HEARTBEAT_INTERVAL, Heartbeat",
    r"\bclass (Pulse|Alarm|Patience|Stride|Pace|Fleet|Shared|Work|Exchange|Dial)\b": "the word of the field for it",
    r"\b_Errand\b|\bclaim_more\b|\blook_over\b|\bobserve_try\b": "the word of the field for it",
    r"\bAnswerReader\b|\bs3_answer\b|\bhttp_answer\b": "ResponseParser, responses",
    r"\bDeadlineWatch\b|\bclass Answers\b": "DeadlineMonitor, StatementDeadlines",
    r"\bclass (Frozen|Fresh)\b": "CredentialSnapshot, RefreshingCredentials",
    r"\bObjectFacts\b": "ObjectInfo",
    r"\bclass (Demand|Different|Ended)\b": "VerifyOptions, ObjectsDiffer, ObjectResult",
    r"\bclass (Dialog|Seen|Arena|Stage)\b": "KeyHandler, State, SweepEnvironment, Environment",
    r"\b[Bb]atch(es)? in hand\b": "claimed, or running",  # entries are in hand; docs/architecture.md says which
    r"\bCrew\b": "WorkerOptions, LocalWorkers",
    r"\bUserMistake\b|\bPlanMistake\b": "UsageError, PlanError",
    r"--parallel-least\b|\bparallel_least\b": "--min-parallel",
    r"\bsplit_off\b": "split_batch",
    r"\bdoomed_worker\b|\bstarting_gate\b|\bhaystack\b": "crash_injector, barrier, secret_scanner",
    r"\bso-and-so\b": "the value itself",
    r"\b[Ss]tation \d": "step",
}
"""What is not written any more, and the word to use instead. Only what cannot be right in another meaning."""

ANY = re.compile("|".join(REPLACED))

RECORDS = (
    "docs/adr/",
    "docs/pictures/",
    "bench/results/",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "tests/docs/test_words.py",
)
"""Where an old word may stand: history, measured runs and their plots, lists of the words themselves."""
MEASURED = {"docs/speed.md"}
"""Pages with tables of measurements: their lines of tables are records as well."""


def find_old_words(path: str, text: str) -> list[str]:
    """Return where a text has a replaced word, as `path:line: word (use ...)`."""
    if not ANY.search(text):
        return []
    found: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if path in MEASURED and line.startswith(("|", "- ")):
            continue
        for pattern, successor in REPLACED.items():
            found += [f"{path}:{number}: {old[0]!r} (use: {successor})" for old in re.finditer(pattern, line)]
    return found


def list_files(*command: str) -> list[str]:
    """Return the paths that a command of git lists, except records; skip where this is no checkout."""
    try:
        listed = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, check=False, timeout=60)
    except OSError:
        pytest.skip("this is no checkout of git")
    if listed.returncode > 1:  # 1: nothing is listed
        pytest.skip("this is no checkout of git")
    paths = listed.stdout.decode().split("\0")
    return [path for path in paths if path and not path.startswith(RECORDS) and (ROOT / path).is_file()]


def test_replaced_words_do_not_come_back() -> None:
    loose = "|".join(REPLACED).replace(r"\b", "").replace(r"\d", "[0-9]")
    found = [find_old_words(path, path) for path in list_files("ls-files", "-z")]
    found += [
        find_old_words(path, (ROOT / path).read_text("utf-8", errors="replace"))
        for path in list_files("grep", "-lzIE", "-e", loose)
    ]
    wrong = [place for each in found for place in each]
    assert not wrong, "old words:\n" + "\n".join(wrong)


def test_an_old_word_is_found_with_its_line(subtests: pytest.Subtests) -> None:
    for old in ("the journey of an object", "raise UserMistake", "a batch in hand", "class Heart:"):
        with subtests.test(old):
            (place,) = find_old_words("some/file.py", f"first line\n{old}")
            assert place.startswith("some/file.py:2: ")


def test_a_word_of_the_field_is_let_be() -> None:
    for text in ("requests in flight", "a heartbeat", "the route of a network", "with one hand"):
        assert find_old_words("some/file.py", text) == []
