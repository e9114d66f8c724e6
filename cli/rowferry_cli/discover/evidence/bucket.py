"""Looks at the legacy bucket: which keys name objects, and how keys begin. Only HEAD and listing requests.

A bucket of few objects is listed once, and nothing else is asked of it. Of a larger one a HEAD is believed where a
listing agrees: file gateways and others answer for `a//b`, or for `A`, with what they hold at `a/b` or `a`.
"""

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
from rowferry.s3.listings.keys import list_pages, read_page
from rowferry.s3.operations import get_object_acl, head_object, list_keys
from rowferry.s3.retry import TRIES, send_with_retries
from rowferry_cli.discover.evidence.listed_keys import Level, ListedKeys
from rowferry_enqueue.checks.buckets.bucket_errors import check_bucket_exists
from rowferry_enqueue.checks.finding import refuse_first

AT_ONCE = 32
"""Requests in flight."""
DEADLINE = timedelta(seconds=30)
"""Of one request."""
MAX_HEADS = 50_000
"""Of one run: at most some cents at any provider."""
MAX_LISTED = 30_000
"""Keys: a bucket with more is not listed whole."""
MAX_LISTINGS = 150
MAX_ACLS = 10
"""Objects whose ACL is looked at."""
_ODD = re.compile(r"^/|//|(^|/)\.\.?(/|$)|[^\x00-\x7f]")
"""In keys that a server may normalise."""


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
        self._asked = 0
        self._agreed: set[str] = set()
        """The first folders of keys that a HEAD and a listing have agreed about."""
        self._listed: dict[tuple[str, bool], Level] = {}
        self._levels: dict[str, frozenset[str]] = {}
        """What is directly below the prefixes that were listed to the end."""
        self._is_cut = False
        """Whether folders were not listed since there were too many."""
        self.denied = 0
        """Keys that may not be looked at, or do not exist: AWS does not say which without s3:ListBucket."""
        self.refusal: ObjectError | None = None
        """Why listing ended early."""
        self._check()
        self.keys = self._list_keys()
        """All keys where there are few, else some."""

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

    def _list_keys(self) -> ListedKeys:
        self._on_progress(f"listing {self.side.bucket}")
        keys: list[str] = []
        try:
            for page in list_pages(lambda request: self._client.ask(request, tries=TRIES), "legacy"):
                keys += page
                if len(keys) > MAX_LISTED:
                    return ListedKeys(keys)
        except ObjectError:  # what it means is said where a folder is listed
            return ListedKeys(keys)
        return ListedKeys(keys, is_whole=True)

    @property
    def heads(self) -> int:
        """Keys that were asked for."""
        return len(self._known)

    def list_limits(self) -> list[str]:
        """Return what was not looked at since a limit was reached, a clause each."""
        limits = {
            f"keys beyond the first {MAX_HEADS:,}": self._asked >= MAX_HEADS,
            f"folders that texts name beyond the first {MAX_HEADS:,}": len(self._in_folders) >= MAX_HEADS,
            f"folders of the bucket beyond the first {MAX_LISTINGS} that were listed": self._is_cut,
        }
        return [what for what, is_reached in limits.items() if is_reached]

    def find(self, keys: Iterable[str]) -> set[str]:
        """Return those of the keys that name objects. Raises UsageError where the bucket may not be read."""
        listed = dict.fromkeys(keys)
        if self.keys.is_whole:
            found = self.keys.find(listed)
            self._known |= {key: int(key in found) for key in listed}
            return found
        wanted = [key for key in listed if key not in self._known and self.may_hold(key)][
            : MAX_HEADS - len(self._known)
        ]
        self._known |= event_loop.run(self._ask(wanted, self._head)) if wanted else {}
        return {key for key in listed if self._known.get(key)}

    def may_hold(self, key: str) -> bool:
        """Return whether the folders that were listed whole leave room for a key, or for keys that begin so."""
        places = (0, *(found.end() for found in re.finditer("/", key)))
        begins = ((key[:place], key[place:].partition("/")) for place in places if key[:place] in self._levels)
        return all(begin + name + slash in self._levels[begin] for begin, (name, slash, _) in begins if name)

    def count_in_folders(self, prefixes: Iterable[str]) -> dict[str, int]:
        """Return how many objects each prefix has below it, two at most; none where listing is not allowed.

        Raises UsageError where the bucket may not be read.
        """
        listed = dict.fromkeys(prefixes)
        if self.keys.is_whole:
            return {one: min(2, self.keys.count_below(one)) for one in listed}
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
        return int(await self._agrees(key))

    async def _agrees(self, key: str) -> bool:
        """Return whether a listing has a key that a HEAD has found: of odd keys, and of one in each first folder."""
        folder = key.partition("/")[0]
        if self.refusal is not None or (folder in self._agreed and not _ODD.search(key)):
            return True
        try:
            page = read_page(await send_with_retries(self._client.send, list_keys("legacy", key, max_keys=1)))
        except ObjectError:
            return True
        if page.keys[:1] == [key]:
            self._agreed.add(folder)
        return page.keys[:1] == [key]

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

    def list_folder(self, prefix: str, *, deep: bool = False) -> Level:
        """Return the folders and the keys, up to 1,000 together, directly below a prefix; `deep`: all keys below it.

        One request; nothing once MAX_LISTINGS are spent, or where listing is not allowed.
        """
        if self.keys.is_whole:
            return self.keys.split(prefix, deep=deep)
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
            if page.is_last and not deep:
                self._levels[prefix] = frozenset((*page.folders, *page.keys))
        return self._listed[prefix, deep]

    def has_prefix(self, prefix: str) -> bool:
        """Return whether objects begin with a prefix; true where that cannot be seen."""
        found = self.list_folder(prefix)
        return any(found) or self.refusal is not None
