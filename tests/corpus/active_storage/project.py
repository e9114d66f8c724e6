"""Active Storage: a blob's key is its object's, and the service that holds it is another column."""

from collections.abc import Mapping
from typing import ClassVar

from corpus.project import Columns, Place, Project, Row, hash_of
from rowferry.plan import SideName

SIDES: dict[str, SideName] = {"amazon": "legacy", "r2": "production"}


class ActiveStorage(Project):
    name = "active_storage"
    ids: ClassVar = {"active_storage_blobs": ("id",), "active_storage_attachments": ("id",)}

    def upload(self, number: int) -> list[Row]:
        blob = {
            "id": number,
            "key": find_key(number),
            "filename": f"été {number}.pdf",
            "content_type": "application/pdf",
            "metadata": '{"identified":true}',
            "service_name": "local" if number % 7 == 6 else "amazon",
            "byte_size": number,
            "checksum": hash_of(number, 22) + "==",
        }
        attachment = {"id": number, "name": "file", "record_type": "Post", "record_id": number, "blob_id": number}
        objects = {"file": blob["key"]} if blob["service_name"] == "amazon" else {}
        return [Row("active_storage_blobs", blob, objects), Row("active_storage_attachments", attachment)]

    def replace(self, row: Row, number: int) -> Row | None:
        return None  # a blob never changes: another file is another blob

    def edit(self, row: Row, number: int) -> Columns:
        if row.table == "active_storage_blobs":
            return {"metadata": f'{{"identified":true,"analyzed":true,"width":{number}}}'}
        return {"record_id": number}

    def places(self, table: str, columns: Columns) -> dict[str, Place]:
        if table != "active_storage_blobs" or columns["service_name"] not in SIDES:
            return {}
        return {"file": Place(SIDES[columns["service_name"]], columns["key"])}

    def moved(self, table: str, columns: Columns) -> Columns:
        if columns.get("service_name") != "amazon":
            return columns
        return {**columns, "service_name": "r2"}

    def unrelated(self) -> Mapping[str, str]:
        keys = [f"variants/{find_key(number)}/{hash_of(number, 64)}" for number in range(1, 6)]
        return dict(zip(keys, keys, strict=True))


def find_key(number: int) -> str:
    """Return a token of base 36, as long as Rails makes it."""
    return f"k{hash_of(number, 27)}"
