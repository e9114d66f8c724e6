"""`[[entries]]`: which rows point at objects, and how a row says where its object is."""

from collections.abc import Iterator
from typing import Literal
from urllib.parse import unquote

from msgspec import field

from rowferry.errors import PlanError
from rowferry.plan.path import parse_path
from rowferry.plan.table import Table
from rowferry.sql_condition import find_fault

Encoding = Literal["none", "percent"]
"""How the text of a column writes a key: as it is, or percent-encoded as in a URL, whose `?…` and `#…` are no key."""
State = str | int | bool


class Entries(Table, frozen=True):
    """`[[entries]]`: one key column of one table. Its rows are the entries of the migration."""

    table: str
    """`schema.table` or `table`."""
    id: str | tuple[str, ...]
    """The column, or the columns together, that name a row."""
    key_column: str | None = field(name="key", default=None)
    """The column that names the row's objects. A row where it is null or empty is no entry. None: `objects` or
    `optional` names them."""
    legacy_prefix: str = field(name="from", default="")
    """Legacy texts of the column begin with this."""
    production_prefix: str = field(name="to", default="")
    """Production texts begin with this instead."""
    where: str | None = None
    """An SQL condition over the table's columns; a row that does not meet it is not an entry."""
    name: str | None = None
    """A name for these entries, where the column is named twice."""
    legacy_object: str | None = None
    """What keys in the legacy bucket begin with in the place of `from`; None: `from` itself."""
    production_object: str | None = None
    """The same for the production bucket and `to`."""
    encoding: Encoding = "none"
    moved: dict[str, tuple[State, State]] = field(default_factory=dict[str, tuple[State, State]])
    """Columns that say where the row's objects are: the value of legacy and of production rows."""
    path: str | None = None
    """Where the texts stand in a column of JSON, or `$[*]` in an array."""
    within: Literal["text"] | None = None
    """`text`: the column holds longer texts, such as HTML, in which each URL that begins with `from` is a text."""
    names: Literal["object", "folder"] = "object"
    """What a key is: that of one object, or `folder`: what the keys of all its objects begin with, up to a `/`."""
    may_be_empty: bool = False
    """Whether a folder without any object is no fault: its row moves as well."""
    objects: str | None = None
    """An SQL expression over the row that yields the legacy keys of its objects (text or text[]); None: the column."""
    optional: str | None = None
    """The same for objects that may be missing."""
    rows: Literal["move", "stay"] = "move"
    """Whether rows are rewritten. Where they stay, only the queue knows what was copied."""
    changed: str | None = None
    """A column of times: later passes take the rows that changed since the one before. Only where rows stay."""

    def __post_init__(self) -> None:
        if not (self.table and self.key_column != "" and self.ids and all(self.ids)):
            raise PlanError("an [[entries]] has an empty `table`, `id` or `key`")
        if fault := next(self._faults(), None):
            raise PlanError(fault)
        if self.path is not None:
            parse_path(self.path)

    @property
    def label(self) -> str:
        """`table.key`, the table or the name, unique in a plan: names these entries in batches, views and messages."""
        return self.name or (self.table if self.key_column is None else f"{self.table}.{self.key_column}")

    @property
    def key(self) -> str:
        """The column whose text is read: without a `key`, the first of the id, which is never rewritten."""
        return self.ids[0] if self.key_column is None else self.key_column

    @property
    def has_places(self) -> bool:
        """Whether the column may hold several texts, each at its place."""
        return self.path is not None or self.within is not None

    @property
    def names_folders(self) -> bool:
        """Whether a row names folders, and not each of its objects."""
        return self.names == "folder"

    @property
    def computes_objects(self) -> bool:
        """Whether SQL of the plan names the objects, and not the text."""
        return self.objects is not None or self.optional is not None

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns of the id."""
        return (self.id,) if isinstance(self.id, str) else self.id

    @property
    def id_words(self) -> str:
        """The columns of the id, for messages."""
        return ", ".join(self.ids)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the plan names, each once."""
        more = (self.changed,) if self.changed else ()
        return tuple(dict.fromkeys((*self.ids, self.key, *self.moved, *more)))

    @property
    def written_columns(self) -> tuple[str, ...]:
        """The columns that a worker rewrites."""
        if self.rows == "stay":
            return ()
        return (*((self.key,) if self.has_two_texts else ()), *self.moved)

    @property
    def legacy_object_prefix(self) -> str:
        """What the keys of legacy objects begin with."""
        return self.decode(self.legacy_prefix) if self.legacy_object is None else self.legacy_object

    @property
    def production_object_prefix(self) -> str:
        """What the keys of production objects begin with."""
        return self.decode(self.production_prefix) if self.production_object is None else self.production_object

    def decode(self, text: str) -> str:
        """Return the part of a key that a text writes. Raises ValueError where it is not encoded as the plan says."""
        if self.encoding == "none":
            return text
        try:
            decoded = unquote(text.partition("#")[0].partition("?")[0], errors="strict")
        except UnicodeDecodeError:
            raise ValueError("its percent-encoding is not that of UTF-8") from None
        if "\0" in decoded:
            raise ValueError("its percent-encoding holds a NUL, which no key may")
        return decoded

    def _is_decodable(self, text: str) -> bool:
        try:
            self.decode(text)
        except ValueError:
            return False
        return True

    @property
    def is_plain(self) -> bool:
        """Whether one column names the row, and another holds the whole key, whose prefix tells where the object is."""
        prefixes = (self.legacy_object, self.production_object)
        names = (*prefixes, self.path, self.within, self.names_folders, self.objects, self.optional, *self.moved)
        return isinstance(self.id, str) and not any(names) and self.encoding == "none" and self.rows == "move"

    @property
    def reads_other_columns(self) -> bool:
        """Whether SQL of the plan may name any column of the table."""
        return any((self.where, self.objects, self.optional))

    @property
    def has_two_texts(self) -> bool:
        """Whether the text of a legacy row differs from that of a production row."""
        return self.rows == "move" and self.legacy_prefix != self.production_prefix

    def _faults(self) -> Iterator[str]:
        """Yield what cannot be meant."""
        label = self.label
        if len(set(self.ids)) < len(self.ids):
            yield f"`id` of {label} names a column twice: name each once"
        if self.key_column is None:
            yield from self._faults_without_key()
        elif not self.has_two_texts and not self.moved and self.rows == "move":
            yield (
                f"`from` and `to` of {label} are the same, so a row could not tell whether its object has moved: give "
                '`to` another prefix, name the column that tells in `moved`, or leave the rows with `rows = "stay"`'
            )
        if self.key in self.ids and self.has_two_texts:
            yield f"`id` and `key` of {label} are one column: the id must stay what it is while the key changes"
        yield from self._faults_of_states()
        yield from self._faults_of_objects()
        yield from self._faults_of_folders()
        if self.within is not None and not (self.legacy_prefix and self.production_prefix):
            yield f"`within` of {label} needs a `from` and a `to` by which URLs are found: give how they begin"
        if self.within is not None and (self.path is not None or self.computes_objects):
            yield f"`within` of {label} says where the objects' names stand: leave out `path`, `objects` and `optional`"
        if self.changed and self.rows == "move":
            yield f'`changed` of {label} is for rows that stay: add `rows = "stay"`, or leave it out'
        for name, expression in (("where", self.where), ("objects", self.objects), ("optional", self.optional)):
            if expression and (fault := find_fault(expression)):
                yield f"the `{name}` of {label} {fault}"

    def _faults_without_key(self) -> Iterator[str]:
        label = self.label
        if not self.computes_objects:
            yield f"{label} has neither a `key` nor `objects`: name the column that names the objects"
        if self.legacy_prefix or self.production_prefix or self.has_places or self.encoding != "none":
            yield f"`from`, `to`, `path`, `within` and `encoding` of {label} are about a text: name its column by `key`"
        if not self.moved and self.rows == "move":
            yield (
                f"no column of {label} could tell whether its objects have moved: name one in `moved`, or leave the "
                'rows with `rows = "stay"`'
            )

    def _faults_of_states(self) -> Iterator[str]:
        if self.moved and self.rows == "stay":
            yield f'`moved` of {self.label} rewrites rows, and `rows = "stay"` does not: leave one of them out'
        for column, (legacy, production) in self.moved.items():
            if column in self.ids:
                yield f"`moved` of {self.label} names {column}, which is its `id`: name another column"
            elif column == self.key:
                words = "leave out `key`" if self.computes_objects else "name another column"
                yield f"`moved` of {self.label} names {column}, which is its `key`: {words}"
            if type(legacy) is not type(production) or legacy == production:
                yield (
                    f"`moved.{column}` of {self.label} needs two different values of one kind: that of rows whose "
                    "objects are still in the legacy bucket, then that of the others"
                )

    def _faults_of_objects(self) -> Iterator[str]:
        for name, object_prefix, prefix in (
            ("legacy_object", self.legacy_object, self.legacy_prefix),
            ("production_object", self.production_object, self.production_prefix),
        ):
            if object_prefix is None and not self._is_decodable(prefix):
                yield f"the prefix {prefix!r} of {self.label} is badly percent-encoded: correct it, or give `{name}`"
        if self.objects is None and self.optional is not None and self.key_column is not None:
            yield (
                f"`optional` of {self.label} adds to `objects`: give that too, or leave out `key` where no object of a "
                "row is required"
            )
        if self.objects is not None and self.encoding != "none":
            yield f"`objects` of {self.label} yields the keys of objects, which are not encoded: leave out `encoding`"

    def _faults_of_folders(self) -> Iterator[str]:
        if self.names_folders and self.rows == "stay":
            yield f"the rows of {self.label} stay, so no row needs to know its folder: copy the folders by [[objects]]"
        if self.may_be_empty and not self.names_folders:
            yield f'`may_be_empty` of {self.label} is about folders: add `names = "folder"`, or leave it out'
