"""A user's mistake ends with one sentence that says what is wrong, exit status 2, and nothing changed."""

import shlex
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from psycopg import sql

from rowferry_lab.servers.server_process import find_free_port
from support.entries.migration import Migration
from support.postgres.roles import new_role
from support.queue.workers_here import run_here

ALL_OF = sql.SQL("select * from rowferry.{} order by 1")
SECRETS = ("hush-hush", "hush-token")
LEGACY = "ROWFERRY_LEGACY"
DURATION = "'--older-than': '{}' is no duration: use a number and s, m, h, d or w (for example 12h)"


@dataclass
class Case:
    """A command, what is wrong when it is run, and the words in which it must say so."""

    command: str
    words: str
    spoil: Callable[[Migration], Any] = lambda _: None
    environment: dict[str, str] = field(default_factory=dict)


def change(place: str, value: Any) -> Callable[[Migration], None]:
    """Return what sets `table.key` of the plan file."""

    def spoil(migration: Migration) -> None:
        table, key = place.split(".")
        found = migration.plan[table]
        (found[0] if isinstance(found, list) else found)[key] = value
        migration.write_plan()

    return spoil


def write(text: str) -> Callable[[Migration], Any]:
    """Return what makes the plan file consist of this text."""
    return lambda migration: migration.plan_path.write_text(text, encoding="utf-8")


def address(migration: Migration, *, user: str | None = None, password: str | None = None, port: int = 0) -> str:
    """Return the migration's DATABASE_URL with another user, password or port."""
    parts = urlsplit(migration.dsn)
    login = f"{user or parts.username}:{password or parts.password}"
    return f"postgresql://{login}@{parts.hostname}:{port or parts.port}{parts.path}"


CASES = {
    "missing plan": Case("enqueue --yes", "There is no plan at", lambda m: m.plan_path.unlink()),
    "no plan to explain": Case("plan", "and `rowferry plan --example`) or", lambda m: m.plan_path.unlink()),
    "bad TOML": Case("enqueue --yes", "is not valid TOML", write("[migration\n")),
    "plan in another encoding": Case("check", "cannot be read", lambda m: m.plan_path.write_bytes(b"\xff")),
    "unknown key": Case("enqueue --yes", "[legacy] has an unknown key `buckett`", change("legacy.buckett", "x")),
    "secret in the plan": Case(
        "check", "unknown key `secret_access_key`", change("legacy.secret_access_key", SECRETS[0])
    ),
    "an id of a column that is not there": Case(
        "check", "public.avatars has no column b; correct `id` in the plan", change("entries.id", ["id", "b"])
    ),
    "an id that is a number": Case("check", "`id` of [[entries]] number 1 is wrong: write", change("entries.id", 7)),
    "plan that is a folder": Case("check --plan .", "The plan . cannot be read (Is a directory): name another file"),
    "wrong type": Case("enqueue --yes", "`migration.max_attempts` is wrong", change("migration.max_attempts", "many")),
    "same prefixes": Case("plan", "are the same", change("entries.to", "image/")),
    "no address of the database": Case("status", "DATABASE_URL is not set", environment={"DATABASE_URL": ""}),
    "enqueue without a terminal": Case("enqueue", "There is no terminal to ask on: add --yes"),
    "migrate without a terminal": Case("migrate", "There is no terminal to ask on: add --yes"),
    "prune without a terminal": Case("prune --older-than 1d", "There is no terminal to ask on: add --yes"),
    "missing table": Case(
        "enqueue --yes", "there is no table public.portraits", change("entries.table", "public.portraits")
    ),
    "missing column": Case("enqueue --yes", "public.avatars has no column file", change("entries.key", "file")),
    "bad where": Case("enqueue --yes", "write a condition over the table", change("entries.where", "no such")),
    "negative batch size": Case("enqueue --yes --batch-size -5", "Invalid value for '-b' / '--batch-size'"),
    "no batch size": Case("enqueue --yes --batch-size 0", "Invalid value for '-b' / '--batch-size'"),
    "batch size in words": Case("migrate --yes --batch-size many", "Invalid value for '-b' / '--batch-size'"),
    "negative limit": Case("enqueue --yes --limit -1", "Invalid value for '-l' / '--limit'"),
    "no processes": Case("migrate --yes --processes -1", "Invalid value for '-p' / '--processes'"),
    "unknown option": Case("worker --turbo", "No such option"),
    "unknown command": Case("zebra", "No such command 'zebra'; see `rowferry --help`"),
    "mistyped command": Case("chek", "Did you mean check?"),
    "mistyped command with a hyphen": Case("clean-upload", "Did you mean clean-uploads?"),
    "batch in words": Case("requeue --batch x", "'x' is not a valid integer range"),
    "duration without a unit": Case("prune --older-than 5", DURATION.format("5")),
    "negative duration": Case("prune --older-than=-1d", DURATION.format("-1d")),
    "unknown unit": Case("clean-uploads --older-than 12y", DURATION.format("12y")),
    "seconds in words": Case("worker --grace long", "'--grace': 'long' is no duration: use seconds, or a number"),
    "too few seconds": Case("worker --lost-after 1", "'1' is less than 3 s"),
    "seconds of the environment": Case(
        "status", "ROWFERRY_LOCK_TIMEOUT is 'long'", environment={"ROWFERRY_LOCK_TIMEOUT": "long"}
    ),
    "grants that are to be applied and not named": Case("init --apply", "--apply needs --grants; see"),
    "a purpose without grants": Case("init --for worker", "--for needs --grants; see"),
    "grants for nobody": Case("init --grants ''", "--grants needs the name of a role; see"),
    "an unknown purpose": Case(
        "init --grants a --for x", "'--for': 'x' is not one of 'enqueuer', 'worker', 'operator'"
    ),
    "a page in no folder": Case(
        "report --html none/page.html", "The page none/page.html cannot be written (No such file or directory): name a"
    ),
    "a page that is the manifest": Case("report --html one --manifest one", "give each a file of its own"),
    **{
        given: Case("worker", words, environment=dict([given.split("=")]))
        for given, words in {
            "ROWFERRY_WORKER_PARALLEL=many": "for ROWFERRY_WORKER_PARALLEL: 'many' is not a valid integer range; see",
            "ROWFERRY_WORKER_PARALLEL=0": "for ROWFERRY_WORKER_PARALLEL: 0 is not in the range 1<=x<=10000; see",
            "ROWFERRY_WORKER_UNTIL_EMPTY=maybe": "for ROWFERRY_WORKER_UNTIL_EMPTY: 'maybe' is not a valid boolean",
            "ROWFERRY_LOG_FORMAT=xml": "for ROWFERRY_LOG_FORMAT: 'xml' is not one of 'auto', 'text', 'json'; see",
            "ROWFERRY_HOST_NAME=a b": "for ROWFERRY_HOST_NAME: 'a b' is no host's name: use letters, digits, dots",
            "ROWFERRY_WORKER_GRACE=1y": "for ROWFERRY_WORKER_GRACE: '1y' is no duration: use seconds, or a number and",
        }.items()
    },
    "fewer in flight than at least": Case(
        "worker --parallel 16 --min-parallel 17", "--min-parallel 17 is more than --parallel 16; see"
    ),
    "none in flight": Case("worker --min-parallel 0", "'--min-parallel': 0 is not in the range 1<=x<=10000"),
    "a batch that is ended while its time lasts": Case(
        "worker --until-empty --time-budget=20 --idle-timeout=20", "--idle-timeout 20 is not more than --time-budget 20"
    ),
    "grants of a plan that is not there": Case(
        "init --grants someone --plan nowhere.toml", "rowferry: There is no plan at nowhere.toml"
    ),
    **{
        f"{command} of no queue": Case(f"{command} --queue tgas", " has no queue 'tgas'; it has migrate.")
        for command in ("errors", "requeue --all", "prune --older-than 1d --yes", "watch --once")
    },
    **{
        f"parts from {bound} bytes on": Case(
            "plan", "migration.multipart_threshold_bytes", change("migration.multipart_threshold_bytes", bound)
        )
        for bound in (0, 5 * 1024**2 - 1, 6 * 1024**3, "5 MB")
    },
    **{
        f"{name} in a file that is gone": Case(
            "status",
            f"{name}_FILE names /run/secrets/gone, which cannot be read: No such file or directory.",
            environment={name: "", f"{name}_FILE": "/run/secrets/gone"},
        )
        for name in ("DATABASE_URL", "ROWFERRY_LEGACY_ACCESS_KEY_ID")
    },
    "unknown queue": Case("worker --until-empty --queue polish", "There is no queue 'polish'"),
    "unreadable address": Case(
        "enqueue --yes", "DATABASE_URL cannot be read", environment={"DATABASE_URL": f"postgresql://u:{SECRETS[0]}@[/x"}
    ),
    **{
        f"password with {sign}": Case(
            "enqueue --yes",
            "DATABASE_URL cannot be read",
            environment={"DATABASE_URL": f"postgresql://u:{password}@127.0.0.1:1/x"},
        )
        for sign, password in {
            "@": f"p@{SECRETS[0]}",
            "two @": f"p@{SECRETS[0]}@{SECRETS[1]}",
            "/": f"12/{SECRETS[0]}",
            "/ and a word": f"p/{SECRETS[0]}",
            "? and @": f"p?{SECRETS[0]}@{SECRETS[1]}",
            "# and @": f"p#{SECRETS[0]}@{SECRETS[1]}",
        }.items()
    },
    "half a pair of keys": Case(
        "worker --until-empty", "ROWFERRY_LEGACY_SECRET_ACCESS_KEY", environment={f"{LEGACY}_SECRET_ACCESS_KEY": ""}
    ),
    "half a pair, and a token": Case(
        "check",
        "ROWFERRY_LEGACY_",
        environment={
            f"{LEGACY}_ACCESS_KEY_ID": "",
            f"{LEGACY}_SECRET_ACCESS_KEY": "",
            f"{LEGACY}_SESSION_TOKEN": SECRETS[1],
        },
    ),
    "unusable endpoint": Case("check", "legacy.endpoint_url must look like", change("legacy.endpoint_url", "ftp://x")),
    "password in the endpoint": Case(
        "check", "without user name or password", change("legacy.endpoint_url", f"http://u:{SECRETS[0]}@127.0.0.1")
    ),
}


@pytest.fixture
def planned(migration: Migration) -> Migration:
    """A migration that would work, with one batch in the queue and one entry that is not there yet."""
    return migration.given(1).fill(1, start=2).write_plan()


def state_of(migration: Migration) -> list[object]:
    """Return all that a command could have changed."""
    initialised = migration.execute("select to_regclass('rowferry.batch_queue') is not null as yes")[0]["yes"]
    tables = ("migration", "batch_queue", "entry_failure") if initialised else ()
    queue = [migration.execute(ALL_OF.format(sql.Identifier(table))) for table in tables]
    return [queue, migration.rows(), migration.legacy.listing()]


def check_refusal(migration: Migration, command: str, words: str, **environment: str) -> None:
    """Run a command and assert that it refuses, in one sentence, and leaves everything as it was."""
    before = state_of(migration)
    done = run_here(migration.folder, *shlex.split(command), **environment)
    assert done.returncode == 2, (done.stdout, done.stderr)
    sentences = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(sentences) == 1, done.stderr
    assert sentences[0].startswith("rowferry: ")
    assert sentences[0].endswith(".")
    assert words in sentences[0]
    assert "Traceback" not in done.stdout + done.stderr
    for secret in (
        *SECRETS,
        urlsplit(migration.dsn).password,
        migration.environment["ROWFERRY_LEGACY_SECRET_ACCESS_KEY"],
    ):
        assert str(secret) not in done.stdout + done.stderr
    assert state_of(migration) == before


def test_a_mistake_gets_one_sentence(planned: Migration, subtests: pytest.Subtests) -> None:
    plan = deepcopy(planned.plan)
    for mistake, case in CASES.items():
        with subtests.test(mistake):
            case.spoil(planned)
            check_refusal(planned, case.command, case.words, **case.environment)
        planned.plan = deepcopy(plan)
        planned.write_plan()


@pytest.mark.parametrize("command", ["enqueue --yes", "worker --until-empty", "status", "init"])
def test_a_login_that_fails_gets_one_sentence(command: str, planned: Migration) -> None:
    wrong, nobody = address(planned, password=SECRETS[0]), address(planned, port=find_free_port())
    check_refusal(planned, command, "PostgreSQL refused the login", DATABASE_URL=wrong)
    check_refusal(planned, command, "PostgreSQL cannot be reached", DATABASE_URL=nobody)


@pytest.mark.parametrize(
    "command", ["enqueue --yes", "worker --until-empty", "status --no-objects", "requeue --all", "init"]
)
def test_a_role_without_rights_gets_one_sentence(command: str, planned: Migration) -> None:
    with new_role(planned.dsn, password=SECRETS[0]) as stranger:
        url = address(planned, user=quote(stranger), password=SECRETS[0])
        check_refusal(planned, command, "permission denied", DATABASE_URL=url)


def test_no_command_at_all_shows_the_help(planned: Migration) -> None:
    done = planned.run()
    assert done.returncode == 2
    assert "\n  migrate " in done.stderr
    assert "rowferry: " not in done.stderr


def test_a_bucket_that_is_gone_gets_one_sentence(planned: Migration) -> None:
    planned.production.client.delete_bucket(Bucket=planned.production.bucket)
    check_refusal(planned, "worker --until-empty", "The production bucket")


def test_a_wrong_secret_key_gets_one_sentence(versitygw_migration: Migration, request: pytest.FixtureRequest) -> None:
    migration = versitygw_migration
    migration.given(1).write_plan()
    words = f"The legacy bucket {migration.legacy.bucket} cannot be used"
    check_refusal(migration, "worker --until-empty", words, ROWFERRY_LEGACY_SECRET_ACCESS_KEY=SECRETS[0])


@pytest.mark.parametrize(
    "command", ["enqueue --yes", "worker --until-empty", "errors", "report", "queues", "watch --once", "requeue --all"]
)
def test_before_init_every_command_says_what_is_missing_and_names_the_next(command: str, planned: Migration) -> None:
    planned.execute("drop schema rowferry cascade")
    check_refusal(planned, command, "This database has no schema rowferry yet: run `rowferry init` first.")
