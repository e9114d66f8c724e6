"""Nextcloud: an object is named after the file's id and overwritten in place; folders and local mounts have none."""

from typing import ClassVar

from corpus.project import Columns, Place, Project, Row, hash_of

OBJECTS, MOUNT = 1, 2
FOLDER_TYPE, PNG = 2, 4


class Nextcloud(Project):
    name = "nextcloud"
    ids: ClassVar = {"oc_filecache": ("fileid",)}
    staying = frozenset({"oc_filecache"})
    read_by_where = ("oc_storages", "oc_mimetypes")

    def upload(self, number: int) -> list[Row]:
        folder = make_entry(number * 10, f"files/album {number}", storage=OBJECTS, mimetype=FOLDER_TYPE)
        photo = make_entry(number * 10 + 1, f"files/album {number}/été.png", storage=OBJECTS, mimetype=PNG)
        rows = [folder, photo]
        if number % 4 == 3:
            rows.append(make_entry(number * 10 + 2, f"mounted/{number}.png", storage=MOUNT, mimetype=PNG))
        return rows

    def replace(self, row: Row, number: int) -> Row | None:
        if not row.objects:
            return None
        return Row(
            row.table, {"mtime": 2_000_000_000 + number, "etag": hash_of(number, 32)}, row.objects, overwrites=True
        )

    def edit(self, row: Row, number: int) -> Columns:
        return {"permissions": 27}

    def places(self, table: str, columns: Columns) -> dict[str, Place]:
        return {role: Place(self.side, key) for role, key in find_keys(columns).items()}


def make_entry(number: int, path: str, *, storage: int, mimetype: int) -> Row:
    columns = {
        "fileid": number,
        "storage": storage,
        "path": path,
        "path_hash": hash_of(number, 32),
        "name": path.rpartition("/")[2],
        "mimetype": mimetype,
        "mtime": 1_700_000_000,
        "etag": hash_of(number, 32),
    }
    return Row("oc_filecache", columns, find_keys(columns))


def find_keys(columns: Columns) -> dict[str, str]:
    if columns["storage"] != OBJECTS or columns["mimetype"] == FOLDER_TYPE:
        return {}
    return {"file": f"urn:oid:{columns['fileid']}"}
