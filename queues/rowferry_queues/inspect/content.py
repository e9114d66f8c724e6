"""Errors of an object's bytes, and of the user's function: no retry would help."""

from rowferry.errors import ObjectError


class ContentFault(ObjectError):
    """The bytes came as they are, but they are corrupt, cut short, too many, or the function fails with them."""
