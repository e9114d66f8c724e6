"""Mastodon: keys are computed from the id, the style and the file's name; nothing in a row says which bucket."""

from typing import ClassVar

from corpus.project import Columns, Place, Project, Row, touch

ATTACHMENTS = {"accounts": ("avatar", "accounts/avatars"), "media_attachments": ("file", "media_attachments/files")}
"""The attachment of each table, and the folder of its objects."""
FIRST_MEDIA = 113_000_000_000_000_000
VIDEO = 2
IN_PROGRESS, COMPLETE = 1, 2


class Mastodon(Project):
    name = "mastodon"
    ids: ClassVar = {"accounts": ("id",), "media_attachments": ("id",)}
    staying = frozenset({"accounts", "media_attachments"})

    def upload(self, number: int) -> list[Row]:
        return [make_account(number), make_media(number)]

    def replace(self, row: Row, number: int) -> Row | None:
        if row.table == "media_attachments":
            return None
        account = make_account(row.columns["id"], f"v{number}-")
        columns = {"avatar_file_name": account.columns["avatar_file_name"], **touch()}
        return Row("accounts", columns, account.objects)

    def edit(self, row: Row, number: int) -> Columns:
        text = {"accounts": "note", "media_attachments": "description"}[row.table]
        return {text: f"words {number}", **touch()}

    def places(self, table: str, columns: Columns) -> dict[str, Place]:
        return {style: Place(self.side, key) for style, key in find_keys(table, columns).items()}


def make_account(number: int, version: str = "") -> Row:
    kind = "gif" if number % 3 == 0 else "png"
    columns = {
        "id": number,
        "username": f"user{number}",
        "domain": "far.example" if number % 4 == 1 else None,
        "avatar_file_name": f"{version}{number:x}.{kind}",
        "avatar_content_type": f"image/{kind}",
        "avatar_storage_schema_version": 1,
    }
    return Row("accounts", columns, find_keys("accounts", columns))


def make_media(number: int) -> Row:
    columns = {
        "id": FIRST_MEDIA + number,
        "account_id": number,
        "file_file_name": f"{number:x}.{'mp4' if number % 3 == 0 else 'jpeg'}",
        "type": VIDEO if number % 3 == 0 else 0,
        "remote_url": "https://far.example/x" if number % 4 == 1 else "",
        "file_meta": {"original": {"width": 10, "height": number}},
        "file_storage_schema_version": 1,
        "processing": IN_PROGRESS if number % 5 == 4 else COMPLETE,
    }
    return Row("media_attachments", columns, find_keys("media_attachments", columns))


def find_keys(table: str, columns: Columns) -> dict[str, str]:
    """Return the key of each style, as Paperclip computes it."""
    attachment, folder = ATTACHMENTS[table]
    name = columns[f"{attachment}_file_name"]
    if name is None:
        return {}
    number = f"{columns['id']:018}" if columns["id"] >= 1_000_000_000 else f"{columns['id']:09}"
    partition = "/".join(number[at : at + 3] for at in range(0, len(number), 3))
    is_local = columns.get("remote_url") == "" if table == "media_attachments" else columns.get("domain") is None
    folder = ("" if is_local else "cache/") + f"{folder}/{partition}"
    keys = {"original": f"{folder}/original/{name}"}
    stem = name.rpartition(".")[0]
    if table == "media_attachments" and columns["processing"] == COMPLETE:
        keys["small"] = f"{folder}/small/{stem}.png" if columns["type"] == VIDEO else f"{folder}/small/{name}"
    if table == "accounts" and columns["avatar_content_type"] == "image/gif":
        keys["static"] = f"{folder}/static/{stem}.png"
    return keys
