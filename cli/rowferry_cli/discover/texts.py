"""Turns texts of a column that name objects, or folders, into [[entries]]: what is rewritten, and what stays. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from rowferry.formatting import show_text
from rowferry.plan import Side
from rowferry_cli.discover.evidence.named import Named
from rowferry_cli.discover.evidence.readings import Reading, names_bucket
from rowferry_cli.discover.evidence.telling_columns import find_change_column
from rowferry_cli.discover.evidence.written_sql import quote_name
from rowferry_cli.discover.proposals import KeyTexts, Proposal, explain_stay, name_rows

ABOUT_SIGNED = (
    "These URLs are presigned: they are valid for one bucket and for a time, so no row can be given one of the "
    "production bucket."
)


def propose(
    named: Named,
    legacy: Side,
    production: Side,
    states: Mapping[str, Sequence[str]] = MappingProxyType({}),
    *,
    rewrites_urls: bool = False,
) -> list[Proposal]:
    """Return the [[entries]] for texts of one form.

    `states`: columns that may say where objects are, with values; `rewrites_urls`: whether URLs are rewritten that do
    not name the bucket either.
    """
    proposals: list[Proposal] = []
    is_one = named.is_within or named.names_folders
    folders = [named.reading.text_prefix] if is_one else choose_folders(named)
    for folder in folders:
        entries, comments = _describe_texts(named, legacy, production, folder, rewrites_urls=rewrites_urls)
        stays = entries.get("rows") == "stay"
        if_stays = list(explain_stay(named.table, states)) if stays else list[str]()
        is_all = folder == named.reading.text_prefix
        there, missing = named.prefixes.get(folder, frozenset()), named.missing_prefixes.get(folder, frozenset())
        existing, sampled = (named.existing, named.sampled) if is_all else (len(there), len(there | missing))
        if not named.table.id:
            comments = ["No unique index names the rows: make a primary key, and then uncomment this.", *comments]
        is_loose = not named.table.id
        seen = list(_describe_seen(named))
        keys = _describe_keys(named, folder) if stays and not named.reading.is_url else None
        proposals.append(Proposal(entries, sampled, existing, comments, is_loose, seen, if_stays, keys))
    return proposals


def _describe_keys(named: Named, folder: str) -> KeyTexts:
    """Return what the keys of one column are like, of which a plan would take those that begin with `folder`."""
    reading, folders = named.reading, {*named.prefixes}
    longest = folders.pop() if len(folders) == 1 else folder
    whole = longest if longest.startswith(folder) else folder
    return KeyTexts(reading.text_prefix, reading.object_prefix, whole[len(reading.text_prefix) :], named.example)


def _describe_seen(named: Named) -> Iterator[str]:
    """Yield how the texts that name objects begin, with counts, and an example."""
    if any(named.prefixes):
        ranked = sorted(named.prefixes.items(), key=lambda one: -len(one[1]))
        most = [f"{folder or 'no folder'} ({len(rows):,})" for folder, rows in ranked[:4]]
        others = len(named.prefixes) - len(most)
        yield f"They begin with {', '.join(most)}{f' and {others:,} others' if others else ''}."
    if named.example != named.example_key:
        yield f"For example {show_text(named.example)!r} names {show_text(named.example_key)!r}."
    if named.missing is not None:
        lacks = "No object is in the folder" if named.names_folders else "No object is named by"
        yield f"{lacks} {show_text(named.missing)!r}, for example."


def choose_folders(named: Named) -> list[str]:
    """Return how the texts of legacy rows begin: as short as is right, so that later rows have it as well.

    Where some folders hold no object at all, those that do are named one by one.
    """
    whole = named.reading.text_prefix
    wrong = [folder for folder in named.missing_prefixes if folder not in named.prefixes]
    right = [folder for folder in named.prefixes if folder.startswith(whole) and folder != whole]
    if not wrong or not right or len(right) > 4 or sum(len(named.missing_prefixes[one]) for one in wrong) < 3:
        return [whole]
    return sorted(right)


def _describe_texts(
    named: Named, legacy: Side, production: Side, folder: str, *, rewrites_urls: bool
) -> tuple[dict[str, Any], list[str]]:
    reading = named.reading
    entries: dict[str, Any] = {**name_rows(named.table), "key": named.column.name, **_name_place(named), "from": folder}
    below = folder[len(reading.text_prefix) :]
    is_ours = reading.is_url and (rewrites_urls or names_bucket(reading.text_prefix, legacy))
    if is_ours and named.signed_rows >= named.rows:
        entries["to"] = folder
        comments = [ABOUT_SIGNED]
    elif is_ours:
        entries["to"] = make_url_base(reading.text_prefix, legacy, production) + below
        comments = ["The rows hold URLs. Correct `to` if URLs of the production bucket shall begin otherwise."]
        comments += _describe_folders(named, entries)
        if named.signed_rows:
            comments.append(f"{len(named.signed_rows):,} more sampled rows hold others. {ABOUT_SIGNED}")
            if named.path is None and not named.is_within:
                entries["where"] = f"{quote_name(named.column.name)} not like '%Signature=%'"
    else:
        entries["to"] = folder
        comments = list(_explain_texts(reading))
    if folder != reading.object_prefix + below:
        entries["legacy_object"] = entries["production_object"] = reading.object_prefix + below
    if reading.is_encoded:
        entries["encoding"] = "percent"
    if entries["from"] == entries["to"]:
        entries["rows"] = "stay"
        if changed := find_change_column(named.table):
            entries["changed"] = changed
    return entries, comments


def _describe_folders(named: Named, entries: dict[str, Any]) -> Iterator[str]:
    """Say in entries that texts name folders, if they do, and yield what a reader should know of that."""
    if not named.names_folders:
        return
    entries["names"] = "folder"
    yield "Each names a folder: the row moves when all objects in it are copied."
    if named.existing < named.sampled:
        entries["may_be_empty"] = True
        yield "Some folders are empty, so `may_be_empty` lets their rows move as well."


def describe_folders_left(named: Named) -> str:
    """Return what is said of texts that name folders, and not by URLs of the bucket."""
    what = f"the texts name folders, such as {show_text(named.example_key)!r}, and not each object in them"
    return f'{what}: [[objects]] copy such folders, and leave the rows; rows that shall change take `names = "folder"`'


def _name_place(named: Named) -> dict[str, str]:
    if named.is_within:
        return {"within": "text"}
    return {} if named.path is None else {"path": named.path}


def _explain_texts(reading: Reading) -> Iterator[str]:
    if reading.is_scheme:
        yield (
            f"The texts begin with {reading.text_prefix}, which may be the application's name for a storage. Where it "
            "has another name for the production bucket, write that in `to` and leave out `rows` and `changed`: then "
            "each row tells where its object is."
        )
    if reading.is_url:
        yield (
            f"The URLs name neither bucket nor endpoint: {reading.text_prefix} may be a CDN, which keeps its name when "
            "you point it to the production bucket. So the rows stay as they are."
        )
    elif reading.object_prefix and not reading.is_scheme and reading.text_prefix != reading.object_prefix:
        yield f"The objects' keys begin with {reading.object_prefix!r}, which the column does not hold."


def make_url_base(base: str, legacy: Side, production: Side) -> str:
    """Return how URLs of the production bucket begin, in the form of those of the legacy bucket."""
    scheme, slashes, rest = base.partition("//")
    _, _, path = rest.partition("/")
    if scheme in {"s3:", "s3a:", "s3n:"}:
        return f"{scheme}{slashes}{production.bucket}/{path}"
    # On AWS, Discourse writes URLs without a scheme, of this form (its lib/file_store/s3_store.rb, site_setting.rb).
    dualstack = "dualstack." if ".dualstack." in rest or not scheme else ""
    endpoint = urlsplit(
        production.endpoint_url or f"https://s3.{dualstack}{production.region_or_default}.amazonaws.com"
    )
    if scheme and endpoint.scheme:
        scheme = f"{endpoint.scheme}:"
    if path.startswith(f"{legacy.bucket}/"):
        return f"{scheme}{slashes}{endpoint.netloc}/{production.bucket}{path.removeprefix(legacy.bucket)}"
    return f"{scheme}{slashes}{production.bucket}.{endpoint.netloc}/{path}"
