"""Which versions of Python and PostgreSQL are tried, and with which tests."""

from typing import NamedTuple

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
EMBEDDED = "18"
"""The PostgreSQL of `make test-all`, which is a wheel among the packages and so always here."""
POSTGRES = ("14", "15", "16", "17")
"""The others."""
LEAST = 4
"""So many legs have to run, or the matrix says nothing."""


class Leg(NamedTuple):
    """A run of the tests. `mark` is of those that its version may change, which the short matrix runs alone."""

    python: str
    postgres: str
    mark: str

    def __str__(self) -> str:
        return f"Python {self.python} and PostgreSQL {self.postgres}"


def list_legs(own: str) -> list[Leg]:
    """Return the legs, each with one version that is another than those of `make test-all`. `own` is its Python."""
    others = [version for version in PYTHONS if version != own]
    return [*(Leg(own, each, "versions") for each in POSTGRES), *(Leg(each, EMBEDDED, "pythons") for each in others)]
