"""Bodies of large objects, made at little cost."""

import os

PIECE_BYTES = 999_983
"""A prime: no part of an upload is a multiple of it, so that each part begins elsewhere in the piece."""


def make_body(size_bytes: int) -> bytes:
    """Return bytes of which no two parts of an upload are alike."""
    return (os.urandom(PIECE_BYTES) * (size_bytes // PIECE_BYTES + 1))[:size_bytes]
