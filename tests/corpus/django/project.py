"""Django: the column holds the name below AWS_LOCATION, and is blank rather than null where there is no file."""

from typing import ClassVar
from uuid import UUID

from corpus.project import ABSENT, Columns, Place, Project, Refusal, Row

LOCATION = "media/"
LIBRARY = "library/"
FILES = {"accounts_profile": ("avatar",), "library_document": ("file", "cover")}


class Django(Project):
    name = "django"
    ids: ClassVar = {"accounts_profile": ("id",), "library_document": ("id",)}
    staying = frozenset({"accounts_profile"})
    refusals = (
        Refusal(
            "the location left out",
            ({"legacy_object": None, "production_object": None},),
            ABSENT,
            by_check_alone=True,
        ),
        Refusal("nothing that tells", ({"rows": None},), "could not tell whether"),
    )

    def upload(self, number: int) -> list[Row]:
        avatar = "" if number % 4 == 3 else f"avatars/{number}/me.png"
        profile = {"id": number, "user_id": number, "avatar": avatar, "bio": f"born {number}"}
        document = {
            "id": str(UUID(int=number)),
            "title": f"book {number}",
            "file": f"documents/2026/book_{number}.pdf",
            "cover": None if number % 3 == 0 else f"covers/{number}.png",
        }
        rows = (("accounts_profile", profile), ("library_document", document))
        return [Row(table, columns, find_keys(table, columns)) for table, columns in rows]

    def replace(self, row: Row, number: int) -> Row | None:
        column = FILES[row.table][0]
        folder = "avatars" if column == "avatar" else "documents"
        columns = {column: f"{folder}/new/{number}.bin"}
        return Row(row.table, columns, find_keys(row.table, {**row.columns, **columns}))

    def edit(self, row: Row, number: int) -> Columns:
        return {"bio" if row.table == "accounts_profile" else "title": f"words {number}"}

    def places(self, table: str, columns: Columns) -> dict[str, Place]:
        found: dict[str, Place] = {}
        for column in FILES[table]:
            if name := columns[column]:
                moved = name.startswith(LIBRARY)
                side = self.side if table == "accounts_profile" else "production" if moved else "legacy"
                found[column] = Place(side, LOCATION + name)
        return found

    def moved(self, table: str, columns: Columns) -> Columns:
        if table == "accounts_profile":
            return columns
        return {**columns, **{name: columns[name] and LIBRARY + columns[name] for name in FILES[table]}}


def find_keys(table: str, columns: Columns) -> dict[str, str]:
    """Return the legacy key of each file."""
    return {name: LOCATION + columns[name] for name in FILES[table] if columns[name]}
