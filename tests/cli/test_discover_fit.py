"""`rowferry plan --discover` writes no [[entries]] that `rowferry check` refuses."""

import re
from pathlib import Path

import pytest

from support.entries.discovering import Discovering, on_moto
from support.processes.cli import well
from support.s3.buckets import Buckets


def check(found: Discovering) -> str:
    """Run `check` over the plan that was written, which must pass."""
    text = found.plan_path.read_text().replace('"new-media"', f'"{found.production.bucket}"')
    found.plan_path.write_text(text)
    return well(found.run("check")).stdout


BASE64 = "repeat('JVBERi0xLjQKJeLjz9MKMyAwIG9iago8PC9MZW5ndGgg', 40)"
COLUMN = "Contract (PDF)"
TEXTS = {
    "a column tells them": ("type text", f"case when n % 4 = 0 then {BASE64} else n || '/d.pdf' end",
                            "case when n % 4 = 0 then 'BYTES' else 'S3_PATH' end", "type = 'S3_PATH'"),
    "a flag tells them": ('"Stored" boolean', "n || case when n % 4 = 0 then '/gone.pdf' else '/d.pdf' end",
                          "n % 4 <> 0", '"Stored"'),
    "a null tells them": ("parent bigint", "n || case when n % 4 = 0 then '/gone.pdf' else '/d.pdf' end",
                          "case when n % 4 = 0 then n end", "parent is null"),
    "they are too long": ("more text", f"case when n % 4 = 0 then {BASE64} else n || '/d.pdf' end", "n::text",
                          f'length("{COLUMN}") <= 1024'),
    "they are remote": ("more text", "case when n % 4 = 0 then 'https://x.example/' || n else n || '/d.pdf' end",
                        "n::text", f"\"{COLUMN}\" not like 'http%'"),
}  # fmt: skip


@pytest.mark.parametrize("kind", TEXTS)
def test_rows_without_objects_are_left_out_by_what_tells_them(found: Discovering, kind: str) -> None:
    column, text, value, where = TEXTS[kind]
    found.fill("files", f'"{COLUMN}" text, {column}', f"{text}, {value}", 1, 40)
    found.put(*[f"{n}/d.pdf" for n in range(1, 41) if n % 4])
    (entries,) = found.find_entries()
    assert entries["where"] == where
    assert "30 of 30 sampled rows name existing objects" in found.plan_path.read_text()
    check(found)


def test_some_lost_objects_are_no_kind_of_their_own(found: Discovering) -> None:
    """One row in fifty has lost its object: rows of that day shall not be left out."""
    day = "case when n % 50 = 0 then 'x' else 'y' end"
    found.fill("files", "path text, day text", f"'d/' || n, {day}", 1, 300)
    found.put(*[f"d/{n}" for n in range(1, 301) if n % 50])
    (entries,) = found.find_entries()
    assert "where" not in entries


DOCUMENTS = {
    "lists": ("'[{\"path\":\"d/' || n || '.pdf\"}]'", "'see the mail.pdf'", "like '[%'"),
    "lists beside what begins like one": ("'[{\"path\":\"d/' || n || '.pdf\"}]'", "'[scan.pdf]'", "like '[{%'"),
    "blanks": ("'[{\"path\":\"d/' || n || '.pdf\"}]'", "' '", "like '[%'"),
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_texts_that_are_no_documents_are_left_out_and_no_good_one_is(found: Discovering, kind: str) -> None:
    good, bad, condition = DOCUMENTS[kind]
    found.fill("files", f'"{COLUMN}" text', f"case when n % 20 = 0 then {bad} else {good} end", 1, 100)
    found.put(*[f"d/{n}.pdf" for n in range(1, 101)])
    (entries,) = found.find_entries()
    assert (entries["where"], entries["path"]) == (f'"{COLUMN}" {condition}', "$[*].path")
    assert "(95 legacy" in check(found).replace(": 95 legacy", "(95 legacy")


@on_moto
def test_what_check_refuses_is_a_comment_with_the_evidence(found: Discovering) -> None:
    found.fill("files", "path text", "'d/' || n", 1, 100)
    found.execute("create table more () inherits (files)")
    found.fill("photos", "path text", "'p/' || n", 1, 100)
    found.put(*[f"d/{n}" for n in range(1, 51)], *[f"p/{n}" for n in range(1, 51)])
    assert "files.path: 50 of 100 sampled rows name existing objects (a comment" in found.discover().stdout
    text = found.read_notes()
    assert "50 of 100 sampled rows name existing objects. They begin with d/" in text
    assert "`rowferry check` refuses this. Mend it, and then uncomment it." in text
    assert "other tables inherit from public.files, and their ids may repeat; name each of them" in text
    check(found)


ADVISED = {
    "members": ("$.path", "'{{\"path\": \"d/' || n || '.pdf\"}}'"),
    "elements": ("$[*].path", "'[{{\"path\": \"d/' || n || '.pdf\"}}]'"),
    "behind blanks": ("$[0]", "chr(10) || ' [\"d/' || n || '.pdf\"]'"),
}


@pytest.mark.parametrize("kind", ADVISED)
def test_the_condition_that_a_check_advises_leaves_out_no_good_row(
    distribution_database: str, fake_buckets: Buckets, tmp_path: Path, kind: str
) -> None:
    found = Discovering(distribution_database, fake_buckets, tmp_path)
    path, document = ADVISED[kind]
    (version,) = found.read_texts("select current_setting('server_version_num')")
    if int(version) >= 160000:
        pytest.skip("from PostgreSQL 16 on such rows are no entries")
    text = f"case when n % 5 = 0 then 'see the mail' else {document.format()} end"
    found.fill("files", f'"{COLUMN}" text', text, 1, 20)
    found.put(*[f"d/{n}.pdf" for n in range(1, 21)])
    sides = "".join(
        f'[{name}]\nbucket = "{side.bucket}"\nendpoint_url = "{side.endpoint_url}"\n'
        for name, side in (("legacy", found.legacy), ("production", found.production))
    )
    plan = f"""[migration]
name = "files"
{sides}
[[entries]]
table = "files"
id = "id"
key = "{COLUMN}"
path = "{path}"
from = "d/"
to = "e/"
"""
    found.plan_path.write_text(plan)
    (advice,) = {*re.findall(r'where = ".*"', found.run("check").stdout)}
    found.plan_path.write_text(f"{plan}{advice}\n")
    assert ": 16 legacy objects with usable production keys" in check(found)
