"""`make mutants`: what it changes, what it keeps, and what it writes."""

import threading
from pathlib import Path

import psycopg
import pytest

from mutants import page
from mutants.modules import Module, choose_sample, list_mutants, list_named, read_equivalents, read_modules
from mutants.mutant import Mutant, digest
from mutants.reach import Reach
from mutants.results import Result, Results, digest_tests
from mutants.sql_operators import list_mutants as list_sql_mutants
from support.checkout import ROOT
from support.postgres.ordinary import as_superuser
from support.postgres.servers import POSTGRES, DatabaseServers

FUNCTION = """\
-- rowferry.find(p_id bigint)
--   Returns the oldest and nothing that is 'DONE'.
create or replace function rowferry.find(p_id bigint)
returns text
language plpgsql
as $$
begin
    -- not null and not me
    return (
        select concat_ws(' ', k.key, min(q.id))
        from rowferry.queue as q
        inner join rowferry.line as l on q.id = l.id and q.name = l.name
        where q.status = 'INIT' and q.at between 1 and 2 and q.lost is not null
        for update of q skip locked
    );
end;
$$;
"""
CHANGES = [
    "drop the argument: , k.key -> (nothing)",
    "swap: min -> max",
    "swap: inner -> left",
    "drop the condition: q.id = l.id -> true",
    "drop the condition: q.name = l.name -> true",
    "swap: and -> or",
    "swap: = -> <>",
    "status: 'INIT' -> 'DONE'",
    "drop the condition: q.at between 1 and 2 -> true",
    "flip: is not null -> is null",
    "drop the lock: for update of q skip locked -> (nothing)",
    "wait for the lock: skip locked -> (nothing)",
]
CODE = """\
def choose(ages):
    log.info("old", 3)
    if ages and ages[0] >= 18:
        ages.pop()
    return min(ages, key=abs)
"""
OF_CODE = {
    "swap_op: >= 18 -> > 18",
    "swap_op: ages and ages[0] >= 18 -> ages or ages[0] >= 18",
    "drop_operand: ages and ages[0] >= 18 -> (ages)",
    "drop_operand: ages and ages[0] >= 18 -> (ages[0] >= 18)",
    "negate: ages and ages[0] >= 18 -> not (ages and ages[0] >= 18)",
    "number: 18 -> 19",
    "number: 0 -> 1",
    "drop_call: ages.pop() -> pass",
    "drop_value: min(ages, key=abs) -> None",
    "arg_removal: min(ages, key=abs) -> min(None, key=abs)",
    "arg_removal: min(ages, key=abs) -> min(ages, key=None)",
    "arg_removal: min(ages, key=abs) -> min(ages, )",
}


def make_module(root: Path) -> Module:
    """Return a module of one SQL function and one file of tests."""
    (root / "find.sql").write_text(FUNCTION, encoding="utf-8")
    (root / "test_find.py").write_text("def test_it(): ...", encoding="utf-8")
    return Module("find", root, ("find.sql",), ("test_find.py",))


def cut(mutant: Mutant) -> str:
    """Return what a mutant changes, without the place."""
    return mutant.label.partition(" ")[2]


def test_an_sql_function_loses_conditions_locks_and_arguments_one_at_a_time(tmp_path: Path) -> None:
    make_module(tmp_path)
    mutants = list(list_sql_mutants(tmp_path, "find.sql"))
    assert set(CHANGES) <= {cut(mutant) for mutant in mutants}
    without_key = next(mutant for mutant in mutants if cut(mutant) == CHANGES[0])
    assert without_key.write() == FUNCTION.replace(", k.key", "")


def test_comments_the_head_and_the_and_of_between_stay_as_they_are(tmp_path: Path) -> None:
    make_module(tmp_path)
    for mutant in list_sql_mutants(tmp_path, "find.sql"):
        changed = mutant.write()
        assert changed.startswith(FUNCTION[: FUNCTION.index("begin")])
        assert "-- not null and not me" in changed
        assert "1 or 2" not in changed


def test_python_is_changed_where_a_test_could_notice(tmp_path: Path) -> None:
    pytest.importorskip("mutmut", reason="mutmut is not installed: `make mutants` does it")
    from mutants.python_operators import list_mutants as list_python_mutants

    (tmp_path / "choose.py").write_text(CODE, encoding="utf-8")
    mutants = list(list_python_mutants(tmp_path, "choose.py"))
    assert {cut(mutant) for mutant in mutants} == OF_CODE
    for mutant in mutants:
        compile(mutant.write(), "choose.py", "exec")
        assert mutant.write() != CODE


def test_a_larger_sample_continues_a_smaller_one_and_has_the_named_mutants(tmp_path: Path) -> None:
    module = make_module(tmp_path)
    named = tmp_path / "named.toml"
    named.write_text('[[mutant]]\npath = "find.sql"\nbefore = "k.key"\nafter = "k.other"\n', encoding="utf-8")
    mutants = list(list_mutants(module, named))
    few, more = ([each.place for each in choose_sample(list(mutants), count, "1")] for count in (3, 8))
    assert more[:4] == few
    assert "named: k.key -> k.other" in few[0]
    assert [each.place for each in choose_sample(list(mutants), 3, "2")] != few


def test_a_named_mutant_whose_code_is_gone_is_an_error(tmp_path: Path) -> None:
    named = tmp_path / "named.toml"
    named.write_text('[[mutant]]\npath = "find.sql"\nbefore = "k.gone"\nafter = ""\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"has not one `k\.gone`"):
        list(list_named(make_module(tmp_path), named))


def test_a_verdict_holds_until_the_code_or_the_tests_change(tmp_path: Path) -> None:
    module = make_module(tmp_path)
    path = tmp_path / "results.jsonl"
    killed, survived = list(list_sql_mutants(tmp_path, "find.sql"))[:2]
    keep(Results(path), module, killed, "killed", "test_find.py::test_it")
    keep(Results(path), module, survived, "survived", "")
    known = Results(path)
    assert [each.verdict for _, each in known.find_all(module, [killed, survived])] == ["killed", "survived"]

    (tmp_path / "test_find.py").write_text("def test_it(): assert True", encoding="utf-8")
    assert known.find(module, survived) is None
    assert known.find(module, killed) is None
    assert [mutant for mutant, _ in known.find_all(module, [killed, survived])] == [survived]
    keep(known, module, survived, "survived", "")
    (tmp_path / "find.sql").write_text(FUNCTION + "\n", encoding="utf-8")
    assert Results(path).find(module, survived) is None


def keep(results: Results, module: Module, mutant: Mutant, verdict: str, by: str) -> None:
    code = digest(module.root / mutant.path)
    results.add(Result(module.name, mutant.place, code, digest_tests(module, by), verdict, by, ran=1, seconds=1))


@pytest.mark.superuser("PostgreSQL counts calls of functions only where a superuser has it do so")
def test_what_a_test_called_last_is_reached(database_servers: DatabaseServers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its session ends a little later."""
    monkeypatch.setattr(DatabaseServers, "fresh_database", DatabaseServers.fresh_database)
    reach = Reach([])
    reach.see_functions(DatabaseServers, [])
    with database_servers.fresh_database(POSTGRES) as dsn:
        session = psycopg.connect(as_superuser(dsn), autocommit=True)
        session.execute("set track_functions = 'all'")
        session.execute("select rowferry.check_worker('a:1:x')")
        later = threading.Timer(0.2, session.close)
        later.start()
    later.join()
    assert "rowferry.check_worker" in reach.take()


def test_the_score_leaves_out_equivalent_mutants_and_shows_their_reasons(tmp_path: Path) -> None:
    module = make_module(tmp_path)
    results = Results(tmp_path / "results.jsonl")
    mutants = list(list_sql_mutants(tmp_path, "find.sql"))
    verdicts = ("killed", "timeout", "killed", "survived", "survived", "invalid")
    for mutant, verdict in zip(mutants, verdicts, strict=False):
        keep(results, module, mutant, verdict, "")
    score = page.score(module, mutants, results, {mutants[4].identity: "It is only slower."})
    assert (score.killed, score.timed_out, score.survived) == (3, 1, [mutants[3].label])
    assert score.rate == 3 / 4
    text = page.fill_in(f"{page.BEGIN}\n{page.END}", [score])
    assert f"| find | {len(mutants)} | 5 | 3 | 1 | 1 | 1 | 75% |" in text
    assert f"`{mutants[3].label}`\n" in text
    assert f"`{mutants[4].label}`: It is only slower." in text


def test_the_page_shows_the_recorded_results() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.fill_in(text, page.read_results()) == text


def test_every_listed_file_and_line_exists() -> None:
    modules = read_modules(ROOT)
    files = {path for module in modules for path in module.files}
    for module in modules:
        list(list_named(module, ROOT / "tools" / "mutants" / "named.toml"))
    for path, line, before, _ in read_equivalents():
        assert path in files
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        assert line in map(str.strip, lines), f"{path} has no `{line}`: correct equivalent.toml"
        assert before
