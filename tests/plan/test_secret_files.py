from pathlib import Path

import pytest

from rowferry.db.connection import connect, name_database
from rowferry.environment import read_secret
from rowferry.errors import UsageError
from rowferry.plan import ProductionSide
from rowferry.s3.access.credentials import load_credentials

SECRET = "s3cr3t"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n")
    return path


def test_a_secret_comes_from_its_variable_or_from_the_file_that_is_named(secret: Path) -> None:
    for environ in (
        {"DATABASE_URL": SECRET},
        {"DATABASE_URL_FILE": str(secret)},
        {"DATABASE_URL": "", "DATABASE_URL_FILE": str(secret)},
    ):
        assert read_secret(environ, "DATABASE_URL") == SECRET
    assert not read_secret({"DATABASE_URL_FILE": ""}, "DATABASE_URL")


def test_both_and_a_file_that_is_not_text_are_a_mistake_that_repeats_nothing_of_it(secret: Path) -> None:
    named = {"DATABASE_URL_FILE": str(secret)}
    with pytest.raises(UsageError, match="both set") as both:
        read_secret({"DATABASE_URL": SECRET, **named}, "DATABASE_URL")
    secret.write_bytes(b"\xff" + SECRET.encode())
    with pytest.raises(UsageError, match="not text") as binary:
        read_secret(named, "DATABASE_URL")
    assert SECRET not in f"{both.value} {binary.value}"


def test_each_credential_of_each_side_may_be_a_file(tmp_path: Path) -> None:
    environ = {}
    names = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")
    for name in names:
        (tmp_path / name).write_text(f"{name} of production\n")
        environ[f"ROWFERRY_PRODUCTION_{name}_FILE"] = str(tmp_path / name)
    found = load_credentials(ProductionSide("new"), environ).get_frozen_credentials()
    assert (found.access_key, found.secret_key, found.token) == tuple(f"{name} of production" for name in names)


def test_the_database_may_be_named_by_a_file(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "url"
    path.write_text(database + "\n")
    monkeypatch.delenv("DATABASE_URL")
    monkeypatch.setenv("DATABASE_URL_FILE", str(path))
    with connect("test") as connection:
        assert connection.info.dbname in name_database()
