"""Shrine: the ids of a file and of its derivatives stand in one document; the storage's prefix does not."""

import json
from typing import Any, ClassVar

from corpus.project import Columns, Place, Project, Row, hash_of

PREFIX, YEAR = "store/", "2026/"
COLUMNS = {"photos": "image_data", "documents": "file_data"}


class Shrine(Project):
    name = "shrine"
    ids: ClassVar = {"photos": ("id",), "documents": ("id",)}

    def upload(self, number: int) -> list[Row]:
        return [make_photo(number, number), make_document(number, number)]

    def replace(self, row: Row, number: int) -> Row | None:
        new = (make_photo if row.table == "photos" else make_document)(row.columns["id"], number)
        column = COLUMNS[row.table]
        return Row(row.table, {column: new.columns[column]}, new.objects)

    def edit(self, row: Row, number: int) -> Columns:
        return {"title": f"title {number}"}

    def places(self, table: str, columns: Columns) -> dict[str, Place]:
        document = read_document(table, columns)
        return {role: find_place(one["id"]) for role, one in find_files(document).items()}

    def moved(self, table: str, columns: Columns) -> Columns:
        document = read_document(table, columns)
        for one in find_files(document).values():
            one["id"] = YEAR + one["id"]
        written = json.dumps(document) if table == "documents" and document else document or None
        return {**columns, COLUMNS[table]: written}


def read_document(table: str, columns: Columns) -> dict[str, Any]:
    """Return a copy of the document, of whichever type its column is."""
    found = columns[COLUMNS[table]]
    return json.loads(found if isinstance(found, str) else json.dumps(found)) or {}


def find_files(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the file and its derivatives."""
    if not document:
        return {}
    return {"file": document, **document.get("derivatives", {})}


def find_place(name: str) -> Place:
    return Place("production" if name.startswith(YEAR) else "legacy", PREFIX + name)


def make_file(name: str) -> dict[str, Any]:
    """Return what Shrine stores of a file; the metadata hold an `id` and odd letters of their own."""
    metadata = {"filename": f'a "b" é {name}', "size": 9007199254740993, "id": "not a key", "mime_type": None}
    return {"id": name, "storage": "store", "metadata": metadata}


def make_photo(row_id: int, number: int) -> Row:
    names = {"file": f"{hash_of(number, 32)}.jpg"}
    names |= {size: f"{size}/{hash_of(number, 31)}.jpg" for size in ("small", "large")[: number % 3]}
    document = make_file(names["file"])
    if number % 3:
        document["derivatives"] = {size: make_file(name) for size, name in names.items() if size != "file"}
    if row_id % 6 == 5:
        return Row("photos", {"id": row_id, "title": "none", "image_data": None})
    return Row("photos", {"id": row_id, "title": f"photo {row_id}", "image_data": document}, in_store(names))


def make_document(row_id: int, number: int) -> Row:
    names = {"file": f"{hash_of(number + 5000, 32)}.pdf"}
    columns = {"id": row_id, "title": f"document {row_id}", "file_data": json.dumps(make_file(names["file"]))}
    return Row("documents", columns, in_store(names))


def in_store(names: dict[str, str]) -> dict[str, str]:
    return {role: PREFIX + name for role, name in names.items()}
