"""Zulip: path_id is the key in whichever bucket the server is set to; thumbnails have no rows of their own."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from corpus.project import Columns, Place, Project, Row, hash_of


class Zulip(Project):
    name = "zulip"
    ids: ClassVar = {"zerver_realm": ("id",), "zerver_attachment": ("id",), "zerver_imageattachment": ("id",)}
    staying = frozenset({"zerver_attachment"})

    def prepare(self) -> Iterator[Row]:
        yield Row("zerver_realm", {"id": 2, "string_id": "main"})

    def upload(self, number: int) -> list[Row]:
        path = find_path(number)
        attachment = {
            "id": number,
            "file_name": "photo.png",
            "path_id": path,
            "owner_id": 8,
            "realm_id": 2,
            "size": number,
            "content_type": "image/png",
        }
        sizes = [{"content_type": "image/webp", "max_width": 840}]
        image = {"id": number, "path_id": path, "realm_id": 2, "original_width_px": 9, "original_height_px": 9}
        image |= {"frames": 1, "thumbnail_metadata": sizes}
        return [Row("zerver_attachment", attachment, {"file": path}), Row("zerver_imageattachment", image)]

    def replace(self, row: Row, number: int) -> Row | None:
        return None  # an uploaded file never changes

    def edit(self, row: Row, number: int) -> Columns:
        return {"is_realm_public": True} if row.table == "zerver_attachment" else {"frames": number}

    def places(self, table: str, columns: Columns) -> dict[str, Place]:
        return {"file": Place(self.side, columns["path_id"])} if table == "zerver_attachment" else {}

    def unrelated(self) -> Mapping[str, str]:
        keys = [f"thumbnail/{find_path(number)}/840x560.webp" for number in range(1, 6)]
        return dict(zip(keys, keys, strict=True))


def find_path(number: int) -> str:
    return f"2/{hash_of(number, 2)}/{hash_of(number, 24)}/photo.png"
