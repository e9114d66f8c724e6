"""What all tables of the plan file have in common."""

from msgspec import Struct


class Table(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table of the plan file: the fields are its keys, and no others are taken."""
