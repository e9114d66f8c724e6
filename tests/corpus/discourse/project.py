"""Discourse: the URL of the object stands in the column, without a scheme."""

from typing import ClassVar

from corpus.project import Columns, Place, Project, Row, hash_of

OLD = "//old-uploads.s3.dualstack.us-east-1.amazonaws.com/"
NEW = "//new-uploads.ams3.digitaloceanspaces.com/"


class Discourse(Project):
    name = "discourse"
    ids: ClassVar = {"uploads": ("id",), "optimized_images": ("id",)}

    def upload(self, number: int) -> list[Row]:
        rows = [make_upload(number, "")]
        if number % 5 == 4:  # stored locally before S3 was set up: nothing of it is in a bucket
            rows[0] = Row("uploads", {**rows[0].columns, "url": f"/uploads/default/{number}.png"})
        elif number % 5 == 3:  # created, and its file not stored: Discourse fills the URL in afterwards
            rows[0] = Row("uploads", {**rows[0].columns, "url": ""})
        else:
            rows.append(make_thumbnail(number))
        return rows

    def replace(self, row: Row, number: int) -> Row | None:
        if row.table != "uploads" or not row.objects:
            return None
        new = make_upload(row.columns["id"], f"{number}")
        return Row("uploads", {name: new.columns[name] for name in ("sha1", "url", "filesize")}, new.objects)

    def edit(self, row: Row, number: int) -> Columns:
        return {"dominant_color": f"{number:06X}"} if row.table == "uploads" else {"etag": f"{number:032x}"}

    def places(self, table: str, columns: Columns) -> dict[str, Place]:
        url = columns["url"]
        if url.startswith(OLD):
            return {"file": Place("legacy", url.removeprefix(OLD))}
        return {"file": Place("production", url.removeprefix(NEW))} if url.startswith(NEW) else {}

    def moved(self, table: str, columns: Columns) -> Columns:
        return {**columns, "url": columns["url"].replace(OLD, NEW)}


def make_upload(number: int, version: str) -> Row:
    sha1 = hash_of(int(f"{number}{version}") + 7, 40)
    key = f"original/2X/{sha1[0]}/{sha1}.jpeg"
    columns = {
        "id": number,
        "user_id": -1,
        "original_filename": f"photo {number}.jpeg",
        "filesize": 100 + number,
        "url": OLD + key,
        "sha1": sha1,
        "extension": "jpeg",
        "etag": sha1[:32],
    }
    return Row("uploads", columns, {"file": key})


def make_thumbnail(number: int) -> Row:
    sha1 = make_upload(number, "").columns["sha1"]
    key = f"optimized/2X/{sha1[0]}/{sha1}_2_690x388.jpeg"
    columns = {
        "id": number * 10,
        "sha1": hash_of(number + 1000, 40),
        "extension": ".jpeg",
        "width": 690,
        "height": 388,
        "upload_id": number,
        "url": OLD + key,
        "version": 2,
    }
    return Row("optimized_images", columns, {"file": key})
