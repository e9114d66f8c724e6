"""A shop of several tenants: composite ids, and a gallery of keys in an array."""

from collections.abc import Iterator
from typing import ClassVar

from corpus.project import Columns, Place, Project, Row

SHOP = "shop/"


class Shop(Project):
    name = "shop"
    ids: ClassVar = {"tenants": ("id",), "product_files": ("tenant_id", "file_no"), "products": ("tenant_id", "sku")}

    def prepare(self) -> Iterator[Row]:
        for tenant in (1, 2, 10):
            yield Row("tenants", {"id": tenant, "name": f"tenant {tenant}"})

    def upload(self, number: int) -> list[Row]:
        tenant = (1, 2, 10)[number % 3]
        path = f"files/{tenant}/{number}.pdf"
        file = {"tenant_id": tenant, "file_no": number // 3, "path": path, "title": f"manual {number}"}
        gallery = [f"gallery/{tenant}/{number}-{n}.jpg" for n in range(number % 4)]
        product = {"tenant_id": tenant, "sku": f'A, {number}"', "gallery": gallery, "price": 9.5}
        return [Row("product_files", file, {"path": path}), Row("products", product, name_all(gallery))]

    def replace(self, row: Row, number: int) -> Row | None:
        tenant = row.columns["tenant_id"]
        if row.table == "product_files":
            path = f"files/{tenant}/new/{number}.pdf"
            return Row(row.table, {"path": path}, {"path": path})
        gallery = [f"gallery/{tenant}/new/{number}.jpg", *row.columns["gallery"][:1]]
        return Row(row.table, {"gallery": gallery}, name_all(gallery))

    def edit(self, row: Row, number: int) -> Columns:
        return {"title": f"manual, edition {number}"} if row.table == "product_files" else {"price": number}

    def places(self, table: str, columns: Columns) -> dict[str, Place]:
        if table == "product_files":
            return {"path": find_place(columns["path"])}
        return {role: find_place(key) for role, key in name_all(columns.get("gallery", ())).items()}

    def moved(self, table: str, columns: Columns) -> Columns:
        if table == "product_files":
            return {**columns, "path": SHOP + columns["path"]}
        return {**columns, "gallery": [SHOP + key for key in columns["gallery"]]} if table == "products" else columns


def find_place(key: str) -> Place:
    return Place("production" if key.startswith(SHOP) else "legacy", key)


def name_all(gallery: list[str]) -> dict[str, str]:
    return {str(number): key for number, key in enumerate(gallery)}
