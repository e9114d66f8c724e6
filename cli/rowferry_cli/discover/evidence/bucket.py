"""Looks at the legacy bucket: which keys name objects, and how keys begin. Only HEAD and listing requests."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Self

from rowferry.errors import AccessDenied, ObjectError, ObjectNotFound, ObjectRejected, UsageError
from rowferry.http import event_loop
from rowferry.plan import Side
from rowferry.s3.acl import find_canned, read_grants
from rowferry.s3.client import open_object_client
from rowferry.s3.listings.keys import read_page
from rowferry.s3.operations import get_object_acl, head_object, list_keys
from rowferry.s3.retry import TRIES, send_with_retries
from rowferry_enqueue.checks.buckets.bucket_errors import check_bucket_exists
from rowferry_enqueue.checks.finding import refuse_first

AT_ONCE = 32
"""Requests in flight."""
DEADLINE = timedelta(seconds=30)
"""Of one request."""
MAX_HEADS = 50_000
"""Of one run: at most some cents at any provider."""
MAX_LISTINGS = 150
MAX_ACLS = 10
"""Objects whose ACL is looked at."""
MOST_OF_FOLDER = 60
"""Keys of one folder that are compared with rows."""
MANY_SLICES = 8
MAX_PREFIXES = 24
"""Folders that may stand before what a column holds."""

_ID = re.compile(r"\d+|[0-9a-f]{2,3}|[0-9a-f]{8,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|_?X{1,4}", re.IGNORECASE)
"""A folder that is named after an id, a digest or a part of one."""


class LegacyBucket:
    """The legacy bucket, with what is known of it so far."""

    def __init__(self, side: Side, on_progress: Callable[[str], None], named: str | None = None) -> None:
        """Connect. Raises UsageError, one sentence, where the bucket cannot be looked at.

        `named`: the option that names the bucket; None: a plan does.
        """
        self.side = side
        self._named = named
        self._on_progress = on_progress
        self._client = open_object_client(side, max_in_flight=AT_ONCE, deadline=DEADLINE)
        self._known: dict[str, int] = {}
        self._in_folders: dict[str, int] = {}
        self._listed: dict[tuple[str, bool], tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._is_cut = False
        """Whether folders were not listed since there were too many."""
        self.denied = 0
        """Keys that may not be looked at, or do not exist: AWS does not say which without s3:ListBucket."""
        self.refusal: ObjectError | None = None
        """Why listing ended early."""
        self._check()

    def __enter__(self) -> Self:
        """Return itself; the end of the block closes the connections."""
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Close the connections."""
        self._client.close()

    def _check(self) -> None:
        try:
            refuse_first(check_bucket_exists(self._client, self.side, self._named))
        except UsageError:
            self._client.close()
            raise

    @property
    def heads(self) -> int:
        """Keys that were asked for."""
        return len(self._known)

    def list_limits(self) -> list[str]:
        """Return what was not looked at since a limit was reached, a clause each."""
        limits = {
            f"keys beyond the first {MAX_HEADS:,}": len(self._known) >= MAX_HEADS,
            f"folders that texts name beyond the first {MAX_HEADS:,}": len(self._in_folders) >= MAX_HEADS,
            f"folders of the bucket beyond the first {MAX_LISTINGS} that were listed": self._is_cut,
        }
        return [what for what, is_reached in limits.items() if is_reached]

    def find(self, keys: Iterable[str]) -> set[str]:
        """Return those of the keys that name objects. Raises UsageError where the bucket may not be read."""
        listed = dict.fromkeys(keys)
        wanted = [key for key in listed if key not in self._known][: MAX_HEADS - len(self._known)]
        self._known |= event_loop.run(self._ask(wanted, self._head)) if wanted else {}
        return {key for key in listed if self._known.get(key)}

    def count_in_folders(self, prefixes: Iterable[str]) -> dict[str, int]:
        """Return how many objects each prefix has below it, two at most; none where listing is not allowed.

        Raises UsageError where the bucket may not be read.
        """
        listed = dict.fromkeys(prefixes)
        wanted = [one for one in listed if one not in self._in_folders][: MAX_HEADS - len(self._in_folders)]
        self._in_folders |= event_loop.run(self._ask(wanted, self._list_first)) if wanted else {}
        return {one: self._in_folders.get(one, 0) for one in listed}

    async def _ask(self, keys: Sequence[str], count: Callable[[str], Awaitable[int]]) -> dict[str, int]:
        """Return how many objects a request shows for each key."""
        found: dict[str, int] = {}
        refusals: list[ObjectError] = []
        room = asyncio.Semaphore(AT_ONCE)

        async def ask(key: str) -> None:
            async with room:
                if refusals and not any(found.values()):
                    return
                try:
                    found[key] = await count(key)
                except (ObjectNotFound, ObjectRejected):  # no such object, or nothing that could be a key
                    found[key] = 0
                except AccessDenied:  # without the right to list, AWS says so of a missing object as well
                    found[key] = 0
                    self.denied += count == self._head
                except ObjectError as error:
                    refusals.append(error)

        await asyncio.gather(*[ask(key) for key in keys])
        if refusals:
            raise UsageError(f"The legacy bucket {self.side.bucket} stopped answering: {refusals[0]}; try again later.")
        return found

    async def _head(self, key: str) -> int:
        await send_with_retries(self._client.send, head_object("legacy", key))
        return 1

    async def _list_first(self, prefix: str) -> int:
        """Return how many objects are below a prefix, two at most; one of its own name is a folder of a console."""
        listed = read_page(await send_with_retries(self._client.send, list_keys("legacy", prefix, max_keys=3)))
        return min(2, sum(key != prefix for key in listed.keys))

    def grants_to_all(self) -> bool:
        """Return whether the ACL of some object that was found lets everybody read it; false where none may be seen."""
        found = [key for key, exists in self._known.items() if exists]
        try:
            for key in found[:: max(1, len(found) // MAX_ACLS)][:MAX_ACLS]:
                acl = find_canned(read_grants(self._client.ask(get_object_acl("legacy", key)).body))
                if acl in {"public-read", "public-read-write"}:
                    return True
        except ObjectError:  # no right to see it, or a server without ACLs
            return False
        return False

    def list_folder(self, prefix: str, *, deep: bool = False) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the folders and the keys, up to 1,000 together, directly below a prefix; `deep`: all keys below it.

        One request; nothing once MAX_LISTINGS are spent, or where listing is not allowed.
        """
        if (prefix, deep) not in self._listed:
            if len(self._listed) >= MAX_LISTINGS or self.refusal is not None:
                self._is_cut = self._is_cut or self.refusal is None
                return (), ()
            self._on_progress(f"listing {self.side.bucket}/{prefix}")
            try:
                page = read_page(self._client.ask(list_keys("legacy", prefix, by_folder=not deep), tries=TRIES))
            except ObjectError as error:
                self.refusal = error
                return (), ()
            self._listed[prefix, deep] = tuple(page.folders), tuple(page.keys)
        return self._listed[prefix, deep]

    def has_prefix(self, prefix: str) -> bool:
        """Return whether objects begin with a prefix; true where that cannot be seen."""
        found = self.list_folder(prefix)
        return any(found) or self.refusal is not None

    def list_prefixes(self) -> list[str]:
        """Return the folders that may stand before what a column holds: of the first two levels, the shortest first."""
        first = [folder for folder in self.list_folder("")[0] if not _ID.fullmatch(folder.rstrip("/"))][:MAX_PREFIXES]
        second: list[str] = []
        for folder in first[:8]:
            below = [name for name in self.list_folder(folder)[0] if not _ID.fullmatch(name[len(folder) : -1])]
            second += below[:8]
        return [*first, *second][:MAX_PREFIXES]

    def list_samples(self) -> list[str]:
        """Return some keys of each folder, down to those that are named after ids."""
        found: list[str] = []
        folders = [""]
        while folders:
            folder = folders.pop(0)
            below, keys = self.list_folder(folder)
            found += _pick(keys)
            names = [name[len(folder) : -1] for name in below]
            named = [] if _are_slices(names) else [folder + name + "/" for name in names if not _ID.fullmatch(name)]
            if len(named) < len(below):
                deep = self.list_folder(folder, deep=True)[1]
                found += _pick(deep)
            if folder.count("/") < 4:
                folders += named[:20]
        return list(dict.fromkeys(found))


def _pick(keys: Sequence[str]) -> list[str]:
    """Return some keys of a folder: neighbours, which may be versions of one object, and others from all over it."""
    half = MOST_OF_FOLDER // 2
    return [*keys[:half], *keys[half :: max(1, len(keys) // half)][:half]]


def _are_slices(names: Sequence[str]) -> bool:
    """Return whether folders are named after parts of ids: many of them, all equally short."""
    return len(names) >= MANY_SLICES and {len(name) for name in names} <= {1, 2, 3}
