"""GitLab: a number says which store a file is in. An upload has another path in each; that of LFS is computed."""

from typing import ClassVar

from corpus.project import Columns, Place, Project, Row, hash_of

LOCAL, REMOTE = 1, 2
BASE = "uploads/-/system/"


class GitLab(Project):
    name = "gitlab"
    ids: ClassVar = {"uploads": ("id",), "lfs_objects": ("id",)}

    def upload(self, number: int) -> list[Row]:
        if number % 6 == 5:  # of an issue: another uploader, whose paths the plan leaves alone
            other = {"id": number, "size": 1, "path": f"{hash_of(number, 32)}/x.png", "uploader": "FileUploader"}
            return [Row("uploads", {**other, "model_type": "Project", "model_id": 1, "store": LOCAL})]
        path = f"{BASE}user/avatar/{number}/me.png"
        upload = {"id": number, "size": number, "path": path, "uploader": "AvatarUploader", "mount_point": "avatar"}
        upload |= {"model_type": "User", "model_id": number, "store": LOCAL}
        oid = hash_of(number, 64)
        lfs = {"id": number, "oid": oid, "size": number, "file": oid[4:], "file_store": LOCAL}
        return [Row("uploads", upload, {"file": path}), Row("lfs_objects", lfs, {"file": find_lfs_key(oid)})]

    def replace(self, row: Row, number: int) -> Row | None:
        if row.table == "lfs_objects" or not row.objects:
            return None
        path = f"{BASE}user/avatar/{row.columns['id']}/new{number}.png"
        return Row("uploads", {"path": path, "store": LOCAL, "size": number}, {"file": path})

    def edit(self, row: Row, number: int) -> Columns:
        return {"checksum": hash_of(number, 64)} if row.table == "uploads" else {"size": number}

    def places(self, table: str, columns: Columns) -> dict[str, Place]:
        if table == "lfs_objects":
            key = find_lfs_key(columns["oid"])
            if columns["file_store"] == LOCAL:
                return {"file": Place("legacy", key)}
            return {"file": Place("production", key.replace("lfs-objects/", "lfs/"))}
        if columns["uploader"] != "AvatarUploader":
            return {}
        return {"file": Place("legacy" if columns["store"] == LOCAL else "production", columns["path"])}

    def moved(self, table: str, columns: Columns) -> Columns:
        if table == "lfs_objects":
            return {**columns, "file_store": REMOTE}
        if columns["uploader"] != "AvatarUploader":
            return columns
        return {**columns, "store": REMOTE, "path": columns["path"].removeprefix(BASE)}


def find_lfs_key(oid: str) -> str:
    return f"lfs-objects/{oid[:2]}/{oid[2:4]}/{oid[4:]}"
