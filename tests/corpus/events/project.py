"""Events partitioned by date: the number of an event repeats from one day to another."""

from datetime import date, timedelta
from typing import ClassVar

from corpus.project import Columns, Place, Project, Refusal, Row


class Events(Project):
    name = "events"
    ids: ClassVar = {"events": ("day", "number")}
    refusals = (
        Refusal("the number alone", ({"id": "number"},), "repeats in different partitions", by_check_alone=True),
    )

    def upload(self, number: int) -> list[Row]:
        day = (date(2026, 1, 20) + timedelta(days=number)).isoformat()
        rows: list[Row] = []
        for camera in (1, 2):
            key = f"rec/{day}/{camera}.mp4"
            columns = {"number": camera, "day": day, "camera": f"gate {camera}", "recording": key}
            rows.append(Row("events", columns, {"file": key}))
        silent = {"number": 3, "day": day, "camera": "gate 3", "recording": None}
        return [*rows, Row("events", silent)]

    def replace(self, row: Row, number: int) -> Row | None:
        key = f"rec/{row.columns['day']}/again/{number}.mp4"
        return Row("events", {"recording": key}, {"file": key})

    def edit(self, row: Row, number: int) -> Columns:
        return {"camera": f"gate {number}"}

    def places(self, table: str, columns: Columns) -> dict[str, Place]:
        key = columns["recording"]
        return {"file": Place("legacy" if key.startswith("rec/") else "production", key)} if key else {}

    def moved(self, table: str, columns: Columns) -> Columns:
        key = columns["recording"]
        return {**columns, "recording": key and key.replace("rec/", "recordings/", 1)}
