"""`rowferry plan --discover` finds the columns that name legacy objects, and writes a plan that says what was seen."""

import tomllib
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from rowferry_cli.discover.evidence import catalogue
from support.entries.discovering import Discovering, on_moto
from support.postgres.roles import PASSWORD, new_role
from support.processes.cli import refused, well
from support.processes.terminal import in_terminal
from support.s3.buckets import Buckets
from support.s3.request_log import LoggedRequest, logged


@pytest.fixture
def photos(found: Discovering) -> Discovering:
    """A table with 20 keys, of which 15 name objects, beside columns that name none."""
    found.execute("create table photos (id bigint primary key, title text, path text, size integer)")
    found.insert("photos", [(n, f"Holiday {n}", f"image/{n}.png", n) for n in range(20)])
    found.put(*[f"image/{n}.png" for n in range(15)])
    return found


def test_a_column_of_keys_is_found_and_counted(photos: Discovering) -> None:
    (entries,) = photos.find_entries()
    assert entries == {"table": "public.photos", "id": "id", "key": "path", "from": "", "to": "", "rows": "stay"}
    assert (
        "# 15 of 20 sampled rows name existing objects.\n"
        "# They begin with image/ (15).\n"
        "# No object is named by 'image/15.png', for example.\n"
    ) in photos.plan_path.read_text()


def test_a_generated_column_is_not_proposed_unless_it_is_named(found: Discovering) -> None:
    found.execute(
        "create table pics (id bigint primary key, n text, path text generated always as ('image/' || n) stored)"
    )
    found.execute("insert into pics (id, n) select i, i || '.png' from generate_series(1, 20) as i")
    found.put(*[f"image/{n}.png" for n in range(1, 16)])
    assert [entries["key"] for entries in found.find_entries()] == ["n"]
    assert "path: it is generated from others" in found.plan_path.read_text()
    found.plan_path.unlink()
    assert [entries["key"] for entries in found.find_entries("pics.path")] == ["path"]


def test_folders_without_any_object_are_left_out(photos: Discovering) -> None:
    photos.insert("photos", [(n, "", f"elsewhere/{n}.png", n) for n in range(100, 110)])
    (entries,) = photos.find_entries()
    assert (entries["from"], entries["to"]) == ("image/", "image/")
    assert "# 15 of 20 sampled rows" in photos.plan_path.read_text()


def test_a_coincidence_is_told_and_not_migrated(photos: Discovering) -> None:
    photos.insert("photos", [(n, f"{n}.png", None, n) for n in range(100, 140)])
    photos.put("100.png")
    (entries,) = photos.find_entries()
    assert entries["key"] == "path"
    assert "public.photos.title: only 1 of" in photos.read_notes()


URLS = {
    "//{bucket}.s3.example.net/": ("", "//new-media.127.0.0.1:{port}/"),
    "https://s3.example.net/{bucket}/": ("", "http://127.0.0.1:{port}/new-media/"),
    "s3://{bucket}/": ("", "s3://new-media/"),
}


@pytest.mark.parametrize("base", URLS)
def test_urls_of_the_bucket_are_rewritten(found: Discovering, base: str) -> None:
    base, (prefix, to) = base.format(bucket=found.legacy.bucket), URLS[base]
    found.make("photos", "url text", [(n, f"{base}image/{n}.png") for n in range(9)])
    found.put(*[f"image/{n}.png" for n in range(9)])
    (entries,) = found.find_entries()
    port = found.legacy.endpoint_url.rpartition(":")[2]
    assert (entries["from"], entries["to"]) == (base, to.format(port=port))
    assert (entries["legacy_object"], entries["production_object"]) == (prefix, prefix)
    assert "rows" not in entries


def test_urls_of_a_cdn_stay_and_encoded_ones_are_decoded(found: Discovering) -> None:
    found.make("photos", "url text", [(n, f"https://cdn.example.com/a%20b/{n}.png?v=2") for n in range(9)])
    found.put(*[f"a b/{n}.png" for n in range(9)])
    (entries,) = found.find_entries()
    assert entries["from"] == entries["to"] == "https://cdn.example.com/"
    assert (entries["legacy_object"], entries["encoding"], entries["rows"]) == ("", "percent", "stay")


def test_several_hosts_in_one_column_become_several_entries(found: Discovering) -> None:
    hosts = ["https://one.example.com/", "https://two.example.com/"]
    found.make("photos", "url text", [(n, f"{hosts[n % 2]}{n}.png") for n in range(10)])
    found.put(*[f"{n}.png" for n in range(10)])
    entries = found.find_entries()
    assert {one["from"] for one in entries} == set(hosts)
    assert len({one["name"] for one in entries}) == 2


def test_a_prefix_outside_of_the_column_and_a_leading_slash_are_found(found: Discovering) -> None:
    found.make("files", "file text, link text", [(n, f"docs/{n}.pdf", f"/thumbs/{n}.png") for n in range(9)])
    found.put(*[f"prod/media/docs/{n}.pdf" for n in range(9)], *[f"thumbs/{n}.png" for n in range(9)])
    file, link = found.find_entries()
    assert (file["from"], file["legacy_object"], file["production_object"]) == ("", "prod/media/", "prod/media/")
    assert (link["from"], link["legacy_object"]) == ("/", "")


def test_documents_and_arrays_are_read_by_place(found: Discovering) -> None:
    sizes = '{"small": {"id": "s/%d.jpg"}, "large": {"id": "l/%d.jpg"}}'
    document = '{"id": "a/%d.jpg", "storage": "store", "derivatives": ' + sizes + "}"
    found.make("files", "data jsonb, gallery text []", [(n, document % (n, n, n), [f"g/{n}.jpg"]) for n in range(9)])
    found.put(*[f"{folder}/{n}.jpg" for folder in "aslg" for n in range(9)])
    entries = found.find_entries()
    assert {(one["key"], one["path"]) for one in entries} == {
        ("data", "$.id"),
        ("data", "$.derivatives.*.id"),
        ("gallery", "$[*]"),
    }


def test_keys_made_of_an_id_and_a_file_name_are_computed(found: Discovering) -> None:
    found.make("users", "avatar text, header_file_name text", [(n, f"me{n}.png", f"top{n}.gif") for n in range(1, 30)])
    for n in range(1, 30):
        found.put(f"uploads/user/avatar/{n}/me{n}.png", f"uploads/user/avatar/{n}/thumb_me{n}.png")
        found.put(f"users/headers/000/000/{n:03}/original/top{n}.gif", f"users/headers/000/000/{n:03}/small/top{n}.png")
    entries = {one["key"]: one for one in found.find_entries()}
    assert entries["avatar"]["objects"] == "'uploads/user/avatar/' || id::text || '/' || avatar"
    assert entries["avatar"]["optional"] == "'uploads/user/avatar/' || id::text || '/thumb_' || avatar"
    for field, style, extension in (("objects", "original", "gif"), ("optional", "small", "png")):
        with psycopg.connect(found.dsn) as connection:
            query = f"select {entries['header_file_name'][field]} from public.users where id = 7"
            assert connection.execute(query.encode()).fetchone() == (
                f"users/headers/000/000/007/{style}/top7.{extension}",
            )
    assert "29 of 29 sampled rows" in found.plan_path.read_text()


@on_moto
@pytest.mark.parametrize("is_public", [True, False])
def test_the_acl_of_public_objects_is_copied(photos: Discovering, is_public: bool) -> None:
    if is_public:
        for n in range(15):
            photos.legacy.put(f"image/{n}.png", b"seen by all", ACL="public-read")
    photos.find_entries()
    production = tomllib.loads(photos.plan_path.read_text())["production"]
    assert production.get("acl") == ("copy" if is_public else None)


def test_a_composite_primary_key_is_the_id(found: Discovering) -> None:
    found.execute("create table files (tenant integer, number integer, path text, primary key (tenant, number))")
    found.insert("files", [(n, 1, f"{n}.png") for n in range(9)])
    found.put(*[f"{n}.png" for n in range(9)])
    (entries,) = found.find_entries()
    assert entries["id"] == ["tenant", "number"]


def test_a_table_that_nothing_names_the_rows_of_is_a_comment(photos: Discovering) -> None:
    photos.execute("create table loose (path text)")
    photos.insert("loose", [(f"image/{n}.png",) for n in range(9)])
    assert "with 1 [[entries]]." in photos.discover().stdout
    (entries,) = tomllib.loads(photos.plan_path.read_text())["entries"]
    assert entries["table"] == "public.photos"
    text = photos.plan_path.read_text()
    assert '# table = "public.loose"' in text
    assert "make a primary key" in text


@pytest.mark.versions
def test_the_catalogue_of_each_postgresql_is_read(any_database: str, fake_buckets: Buckets, tmp_path: Path) -> None:
    found = Discovering(any_database, fake_buckets, tmp_path)
    columns = "id bigint generated always as identity, day date not null, path varchar(90), primary key (day, id)"
    found.execute(f"create table files ({columns}) partition by range (day)")
    found.execute("create table files_rest partition of files default")
    found.execute(
        "insert into files (day, path) select date '2026-01-01' + n, n || '.png' from generate_series(1, 9) n"
    )
    found.put(*[f"{n}.png" for n in range(1, 10)])
    (entries,) = found.find_entries()
    assert (entries["table"], entries["id"], entries["key"]) == ("public.files", ["day", "id"], "path")


def test_names_of_every_kind_are_written_as_toml_takes_them(found: Discovering) -> None:
    found.execute('create table "my.files\n\'\'\'" ("the ""id""" bigint primary key, "path\\\u2028" text)')
    with psycopg.connect(found.dsn, autocommit=True) as connection:
        connection.execute("insert into public.\"my.files\n'''\" select n, n || '.png' from generate_series(1, 9) n")
    found.put(*[f"{n}.png" for n in range(1, 9)])
    (entries,) = found.find_entries()
    assert (entries["table"], entries["id"], entries["key"]) == ("public.\"my.files\n'''\"", 'the "id"', "path\\\u2028")


@on_moto
def test_nothing_is_written_to_the_database_or_the_bucket(photos: Discovering) -> None:
    """A schema of the user's calls a function that writes: PostgreSQL refuses, since the transaction is read-only."""
    photos.execute("create table traces (n integer)")
    photos.execute(
        "create function trace(text) returns text language sql as 'insert into public.traces values (1); select $1'"
    )
    (photos.folder / "mine.toml").write_text(
        'name = "mine"\ntitle = "Mine"\nversions = "1"\nsource = "me"\nany_column = true\n'
        '[[entries]]\ntable = "photos"\nkey = "path"\nobjects = "public.trace(path)"\nrows = "stay"\n'
    )
    requests: list[LoggedRequest] = []
    with logged(photos.legacy.endpoint_url) as log, log.telling(requests.append):
        done = photos.discover("--for", "./mine.toml", legacy=f"{log.endpoint_url}/{photos.legacy.bucket}")
        assert "No column of this database names an object" in done.stderr
        well(photos.discover(legacy=f"{log.endpoint_url}/{photos.legacy.bucket}"))
        assert {request.method for request in requests} == {"HEAD", "GET"}
    with psycopg.connect(photos.dsn) as connection:
        assert connection.execute("select count(*) from public.traces").fetchone() == (0,)


def test_a_large_table_is_read_in_blocks(photos: Discovering, monkeypatch: pytest.MonkeyPatch) -> None:
    photos.execute("insert into photos select n, '', 'image/' || n % 15 || '.png', 1 from generate_series(100, 9000) n")
    monkeypatch.setattr(catalogue, "SCANNED_BLOCKS", 1)
    (entries,) = photos.find_json("--sample", "50")["entries"]
    assert (entries["key"], entries["existing"], entries["sampled"]) == ("path", 50, 50)


def test_columns_that_the_role_may_not_read_are_left_out(photos: Discovering) -> None:
    photos.execute("create table closed (id bigint primary key, path text)")
    with new_role(photos.dsn) as role:
        photos.execute(f'grant select (id, path) on photos to "{role}"')
        done = well(photos.discover(DATABASE_URL=make_conninfo(photos.dsn, user=role, password=PASSWORD)))
    assert "Looked at 1 column, " in done.stdout


def test_our_own_tables_are_left_out(photos: Discovering) -> None:
    assert photos.find_json()["columns"] == 2
    with psycopg.connect(photos.dsn) as connection:
        query = "select relname from pg_class where relnamespace = 'rowferry'::regnamespace and relkind in ('r', 'p')"
        assert {name for (name,) in connection.execute(query)} <= set(catalogue.OWN_TABLES)


def test_a_plan_with_buckets_alone_is_completed(photos: Discovering) -> None:
    begun = (
        '# mine\n[migration]\nname = "holidays"\n'
        f'[legacy]\nbucket = "{photos.legacy.bucket}"\nendpoint_url = "{photos.legacy.endpoint_url}"\n'
        '[production]\nbucket = "new-media"\n'
    )
    photos.plan_path.write_text(begun)
    well(photos.run("plan", "--discover", "--rows", "stay"))
    assert photos.plan_path.read_text().startswith(begun)
    assert "Migration holidays" in photos.run("plan").stdout


def test_a_whole_plan_is_never_overwritten(photos: Discovering) -> None:
    photos.find_entries()
    before = photos.plan_path.read_text()
    assert "name another file with --plan" in refused(photos.discover())
    assert photos.plan_path.read_text() == before
    assert photos.discover("--plan", "other.toml").returncode == 0


def test_json_tells_the_same_also_beside_a_whole_plan_and_writes_no_file(photos: Discovering) -> None:
    told = photos.find_json()
    assert not photos.plan_path.exists()
    (entries,) = told["entries"]
    assert (entries["existing"], entries["sampled"], entries["key"]) == (15, 20, "path")
    written = photos.find_entries()
    assert [tomllib.loads(each["plan"])["entries"] for each in (told, photos.find_json())] == [written, written]


def test_only_the_named_columns_are_looked_at(photos: Discovering) -> None:
    photos.execute("alter table photos add second text")
    photos.execute("update photos set second = path")
    (entries,) = photos.find_entries("photos.second")
    assert entries["key"] == "second"


WRONG = [
    (["--legacy", "{legacy}x", "--production", "new"], "correct --legacy"),
    (["--legacy", "http://127.0.0.1:1/gone", "--production", "new"], "cannot be looked at"),
    (["--production", "new"], "Which is the legacy bucket? Add --legacy"),
    (["--legacy", "old"], "Which is the production bucket? Add --production"),
    (["--legacy", "https://server", "--production", "new"], "write the server and then the bucket"),
    (["--legacy", "s3://old/folder", "--production", "new"], "the bucket alone, as s3://old"),
    (["--legacy", "server/old", "--production", "new"], "write https://server/bucket, or s3://bucket on AWS"),
    (["--for", "discurse", "--legacy", "old", "--production", "new"], "No schema 'discurse' is known"),
    (["--for", "./gone.toml", "--legacy", "old", "--production", "new"], "There is no file gone.toml"),
]


@on_moto  # the fake does not list buckets
def test_what_is_wrong_is_one_sentence(photos: Discovering, subtests: pytest.Subtests) -> None:
    for arguments, words in WRONG:
        with subtests.test(" ".join(arguments)):
            named = [word.format(legacy=photos.url_of(photos.legacy.bucket)) for word in arguments]
            assert words in refused(photos.run("plan", "--discover", *named))
            assert not photos.plan_path.exists()


NOT_THERE = [
    (
        ["photo.path"],
        "no column photo.path that this role may read: name columns as table.column (did you mean photos.path?).",
    ),
    (["path", "photos.path"], "no column path that this role may read"),
    (
        ["--for", "discourse"],
        "no table of Discourse (uploads, optimized_images) that this role may read: see that DATABASE_URL is that "
        "of Discourse, or let --discover look at every column.",
    ),
]


def test_what_the_database_does_not_have_is_named(photos: Discovering, subtests: pytest.Subtests) -> None:
    for arguments, words in NOT_THERE:
        with subtests.test(" ".join(arguments)):
            assert words in refused(photos.discover(*arguments))
            assert not photos.plan_path.exists()


def test_a_bucket_that_belongs_to_another_database_is_told(found: Discovering) -> None:
    found.make("photos", "path text", [(1, "image/1.png")])
    assert "No column of this database names an object" in refused(found.discover())
    assert not found.plan_path.exists()


def test_wrong_credentials_and_options_without_discover_are_one_sentence(photos: Discovering) -> None:
    said = refused(photos.discover(ROWFERRY_LEGACY_ACCESS_KEY_ID="", ROWFERRY_LEGACY_SECRET_ACCESS_KEY=""))
    assert "credentials" in said
    assert "--discover" in refused(photos.run("plan", "--legacy", "old"))


@pytest.mark.parametrize("url", ["http://user:hush@127.0.0.1:1/old", "https://user:hush@server"])
def test_a_password_in_a_url_is_refused_and_not_told(photos: Discovering, url: str) -> None:
    done = photos.discover(legacy=url)
    assert done.returncode == 2
    assert "hush" not in done.stdout + done.stderr
    assert not photos.plan_path.exists()


def test_a_terminal_shows_how_far_it_is(photos: Discovering) -> None:
    sides = ("--legacy", photos.url_of(photos.legacy.bucket), "--production", photos.url_of("new-media"))
    path = str(photos.plan_path)
    asked = ("plan", "--discover", *sides, "--plan", path, "--rows", "stay")
    with in_terminal(*asked, size=(120, 24), **photos.environment) as terminal:
        assert terminal.wait() == 0
        assert "2/2" in terminal.output
        assert "15 of 20 sampled rows" in terminal.output
