"""Wagtail: images and renditions, each with its key in a varchar of 100; the site moves them below a folder."""

from collections.abc import Iterator
from typing import ClassVar

from corpus.project import Columns, Place, Project, Row, hash_of

SITE = "site/"


class Wagtail(Project):
    name = "wagtail"
    ids: ClassVar = {
        "wagtailcore_collection": ("id",),
        "wagtailimages_image": ("id",),
        "wagtailimages_rendition": ("id",),
    }

    def prepare(self) -> Iterator[Row]:
        root = {"id": 1, "path": "0001", "depth": 1, "numchild": 0, "name": "Root"}
        yield Row("wagtailcore_collection", root)

    def upload(self, number: int) -> list[Row]:
        return [make_image(number), *(make_rendition(number, n) for n in range(number % 3))]

    def replace(self, row: Row, number: int) -> Row | None:
        if row.table == "wagtailimages_rendition":
            return None
        new = make_image(row.columns["id"], f"-{number}")
        return Row(row.table, {name: new.columns[name] for name in ("file", "file_hash", "file_size")}, new.objects)

    def edit(self, row: Row, number: int) -> Columns:
        return {"focal_point_x": number} if row.table == "wagtailimages_image" else {"width": number}

    def places(self, table: str, columns: Columns) -> dict[str, Place]:
        key = columns.get("file")
        return {"file": Place("production" if key.startswith(SITE) else "legacy", key)} if key else {}

    def moved(self, table: str, columns: Columns) -> Columns:
        return {**columns, "file": SITE + columns["file"]} if "file" in columns else columns


def make_image(number: int, version: str = "") -> Row:
    key = f"original_images/pic{number}{version}.jpg"
    columns = {
        "id": number,
        "title": f"picture {number}",
        "file": key,
        "width": 800,
        "height": 600,
        "file_size": number,
        "file_hash": hash_of(number, 40),
        "collection_id": 1,
    }
    return Row("wagtailimages_image", columns, {"file": key})


def make_rendition(number: int, n: int) -> Row:
    spec = f"fill-{100 + n}x100"
    key = f"images/pic{number}.{spec}.jpg"
    columns = {"id": number * 10 + n, "filter_spec": spec, "file": key, "width": 100, "height": 100, "image_id": number}
    return Row("wagtailimages_rendition", columns, {"file": key})
