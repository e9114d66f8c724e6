"""The data files of this package: tables of TOML, each row checked by its type."""

from importlib.resources import files
from typing import TypeVar

import msgspec

Row = TypeVar("Row")


def read_rows(file: str, table: str, row: type[Row]) -> tuple[Row, ...]:
    """Return the rows of `[[table]]` in their order. Raises msgspec.ValidationError where one is not of the type."""
    text = files("rowferry.s3").joinpath(file).read_bytes()
    return msgspec.toml.decode(text, type=dict[str, tuple[row, ...]])[table]
