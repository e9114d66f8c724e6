"""MLflow's runs: each row names the folder of its artifacts, however many there are."""

from collections.abc import Iterable

from support.entries.entry_table import Record, keyed
from support.entries.migration import Migration

LEGACY, PRODUCTION = "s3://legacy/", "s3://production/"


class Runs:
    """A table of runs, and the objects below them."""

    def __init__(self, migration: Migration) -> None:
        self.migration = migration
        self.bodies: dict[str, dict[str, bytes]] = {}
        """What must stand in the folder of each run, by keys behind it."""
        migration.execute("create table public.runs (run_uuid text primary key, artifact_uri text)")
        migration.plan_entries(
            "public.runs",
            **keyed(
                "artifact_uri",
                LEGACY,
                PRODUCTION,
                id="run_uuid",
                names="folder",
                legacy_object="",
                production_object="mlflow/",
            ),
        )

    def add(self, run: str, names: Iterable[str], *, folder: str | None = None) -> None:
        """Add a run with the artifacts of these names; `folder`: where they are, if not below its own name."""
        where = f"0/{run}/artifacts" if folder is None else folder
        self.migration.execute("insert into public.runs values (%s, %s)", (run, f"{LEGACY}{where}"))
        self.bodies[run] = {}
        for name in names:
            self.put(run, name, f"body of {name} of {run}".encode(), folder=where)

    def put(self, run: str, name: str, body: bytes, *, folder: str | None = None) -> None:
        """Write an artifact as the application does."""
        where = f"0/{run}/artifacts" if folder is None else folder
        self.migration.legacy.put(f"{where.rstrip('/')}/{name}", body)
        self.bodies[run][name] = body

    def places(self) -> dict[str, str]:
        """Return what each row holds."""
        return {row["run_uuid"]: row["artifact_uri"] for row in self._read()}

    def _read(self) -> list[Record]:
        return self.migration.execute("select * from public.runs order by run_uuid")

    def audit(self, *, left: Iterable[str] = ()) -> None:
        """Hold every row against all objects of its folder; `left`: runs whose rows are legacy still."""
        stay = {*left}
        for run, place in self.places().items():
            assert place.startswith(LEGACY if run in stay else PRODUCTION), (run, place)
            side = self.migration.legacy if run in stay else self.migration.production
            folder = place.removeprefix(LEGACY) if run in stay else f"mlflow/{place.removeprefix(PRODUCTION)}"
            for name, body in self.bodies[run].items():
                assert side.read(f"{folder.rstrip('/')}/{name}") == body, (run, name)
        self.migration.check_balance()
