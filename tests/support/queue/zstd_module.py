"""zstd of the standard library where Python has it, from 3.14 on; else its backport, as the product takes it."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["zstd"]
