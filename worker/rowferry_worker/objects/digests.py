"""MD5 digests of bodies: computed where they are needed, beside the event loop where that takes long."""

import asyncio
import base64
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from rowferry.errors import ObjectDamaged

T = TypeVar("T")

BESIDE_LOOP_BYTES = 256 * 1024
"""A larger body is hashed on another thread: 0.3 ms, several times what the way there costs."""
HASHING_THREADS = 2


async def hash_body(body: bytes) -> str:
    """Return the MD5 of a body in hexadecimal."""
    if len(body) <= BESIDE_LOOP_BYTES:
        return _hash(body)
    return await run_beside_loop(_hash, body)


async def run_beside_loop(hash_bytes: Callable[..., T], *arguments: Any) -> T:
    """Run a function that hashes on another thread; a few of them serve all bodies."""
    return await asyncio.get_running_loop().run_in_executor(_start_threads(), hash_bytes, *arguments)


def mismatch(what: str, digest: str, told: str | None) -> ObjectDamaged:
    """Return the error of bytes whose MD5 is not what the server says; `what` was done with them: read, written."""
    return ObjectDamaged("DigestMismatch", f"the bytes {what} have MD5 {digest}, the server says {told}")


def content_md5(digest: str) -> tuple[str, str]:
    """Return the header by which a server checks what it receives, given the MD5 in hexadecimal."""
    return "Content-MD5", base64.b64encode(bytes.fromhex(digest)).decode()


def _hash(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


@cache
def _start_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(HASHING_THREADS, thread_name_prefix="rowferry-md5")
