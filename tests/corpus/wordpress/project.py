"""A site with full URLs in its rows: percent-encoded, some with a query, some without TLS, some of other sites."""

from typing import ClassVar
from urllib.parse import quote, unquote

from corpus.project import ABSENT, Columns, Place, Project, Refusal, Row

HOST = "old.example.com/wp-content/uploads/"
NEW = "media.example.com"
FOLDER = "wp-content/uploads/"


class WordPress(Project):
    name = "wordpress"
    ids: ClassVar = {"wp_posts": ("id",), "wp_covers": ("post_id",)}
    refusals = (
        Refusal(
            "URLs taken for keys",
            ({"legacy_object": None, "production_object": None},),
            ABSENT,
            by_check_alone=True,
        ),
        Refusal("the encoding left out", ({"encoding": None},), ABSENT, by_check_alone=True),
        Refusal("two prefixes that become one", ({}, {}, {"to": "https://media.example.com/"}), "name the same rows"),
    )

    def upload(self, number: int) -> list[Row]:
        key = f"2026/{number:02}/Été & Meer, 100% {number}.jpg"
        attachment = {
            "id": number,
            "post_title": f"photo {number}",
            "post_type": "attachment",
            "guid": f"https://{HOST}{quote(key)}",
        }
        scheme, query = ("http", "") if number % 3 == 0 else ("https", f"?resize={number}&x=1")
        cover = {"post_id": number, "image_url": f"{scheme}://{HOST}{quote(key)}{query}", "caption": f"no {number}"}
        objects = {"file": FOLDER + key}
        if number % 5 == 4:
            cover, objects = {**cover, "image_url": f"https://other.example.net/{number}.png"}, {}
        page = {"id": number + 1000, "post_title": f"page {number}", "post_type": "page", "guid": attachment["guid"]}
        rows = [Row("wp_posts", attachment, {"file": FOLDER + key}), Row("wp_covers", cover, objects)]
        return [*rows, Row("wp_posts", page)]

    def replace(self, row: Row, number: int) -> Row | None:
        if not row.objects:
            return None
        key = f"2030/new {row.table} {number}.jpg"
        column = "guid" if row.table == "wp_posts" else "image_url"
        return Row(row.table, {column: f"https://{HOST}{quote(key)}"}, {"file": FOLDER + key})

    def edit(self, row: Row, number: int) -> Columns:
        return {"post_title" if row.table == "wp_posts" else "caption": f"words {number}"}

    def places(self, table: str, columns: Columns) -> dict[str, Place]:
        url = columns["guid" if table == "wp_posts" else "image_url"]
        if columns.get("post_type") == "page":
            return {}
        key = unquote(url.partition("?")[0].partition("#")[0])
        host, _, rest = key.partition("//")[2].partition("/")
        if host == NEW:
            return {"file": Place("production", rest)}
        return {"file": Place("legacy", rest)} if host == "old.example.com" else {}

    def moved(self, table: str, columns: Columns) -> Columns:
        if columns.get("post_type") == "page":
            return columns
        column = "guid" if table == "wp_posts" else "image_url"
        return {**columns, column: columns[column].replace(f"//{HOST}", f"//{NEW}/")}
