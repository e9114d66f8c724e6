"""CarrierWave: the column holds file names; folder and version names are code of the application."""

from typing import ClassVar

from corpus.project import ABSENT, Columns, Place, Project, Refusal, Row, touch


class CarrierWave(Project):
    name = "carrierwave"
    ids: ClassVar = {"users": ("id",), "products": ("id",)}
    staying = frozenset({"users", "products"})
    refusals = (
        Refusal(
            "file names taken for keys",
            ({"objects": None, "optional": None},),
            ABSENT,
            by_check_alone=True,
        ),
        Refusal("an expression with a fault", ({"objects": "'uploads/' || avtar"},), "avtar"),
    )

    def upload(self, number: int) -> list[Row]:
        user = {"id": number, "name": f"user {number}", "avatar": None if number % 6 == 5 else f"me{number}.png"}
        product = {"id": number, "title": f"thing {number}", "photos": [f"{n}.jpg" for n in range(number % 3)]}
        rows = (("users", user), ("products", product))
        return [Row(table, columns, find_keys(table, columns)) for table, columns in rows]

    def replace(self, row: Row, number: int) -> Row | None:
        if row.table == "users":
            columns: Columns = {"avatar": f"new{number}.png", **touch()}
        else:
            columns = {"photos": [f"new{number}.jpg", "0.jpg"], **touch()}
        return Row(row.table, columns, find_keys(row.table, {**row.columns, **columns}))

    def edit(self, row: Row, number: int) -> Columns:
        return {"name" if row.table == "users" else "title": f"other {number}", **touch()}

    def places(self, table: str, columns: Columns) -> dict[str, Place]:
        return {role: Place(self.side, key) for role, key in find_keys(table, columns).items()}


def find_keys(table: str, columns: Columns) -> dict[str, str]:
    """Return the key of each file and version."""
    if table == "products":
        folder = f"uploads/product/photos/{columns['id']}"
        return {name: f"{folder}/{name}" for name in columns["photos"] or ()}
    folder = f"uploads/user/avatar/{columns['id']}"
    name = columns["avatar"]
    return {"file": f"{folder}/{name}", "thumb": f"{folder}/thumb_{name}"} if name else {}
