"""rowferry: moves S3 objects and the PostgreSQL rows that point at them, together."""

from importlib.metadata import version

__version__ = version("rowferry")
