"""Finds [[objects]] that lie beside the objects of rows: who reads a row that has moved may need them at once."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from shlex import quote

from rowferry.keys import map_entry
from rowferry.plan import Plan
from rowferry_enqueue.checks.buckets.objects import Sample
from rowferry_enqueue.checks.finding import Finding, note


def check_companions(plan: Plan, samples: Sequence[Sample]) -> Iterator[Finding]:
    """Yield the [[objects]] that share a folder with sampled objects whose rows move; one note for each of them.

    Workers copy both at the same time, so a row may point at production before the objects beside its own are there.
    """
    folders = {sample.entries.label: set(_list_folders(sample)) for sample in samples if sample.entries.rows == "move"}
    for objects in plan.objects:
        beside = [label for label, found in folders.items() if _share_folder(objects.prefix, found)]
        if beside:
            command = f"`rowferry run migrate --table {quote(objects.label)}`"
            what = (
                f"objects of {objects.label} lie beside those of {', '.join(beside)}, whose rows may move before them"
            )
            yield note(what, f"where the application needs them together, run {command} first")


def _share_folder(prefix: str, folders: Iterable[str]) -> bool:
    """Return whether keys below `prefix` may lie in one of the folders; the root of a bucket is no folder."""
    return any(folder and (folder.startswith(prefix) or prefix.startswith(folder)) for folder in folders)


def _list_folders(sample: Sample) -> Iterator[str]:
    """Yield the folder of each legacy object of sampled rows, with its slash."""
    for entry in sample.sampled:
        with suppress(ValueError):
            for keys in map_entry(entry, sample.entries)[0]:
                folder, slash, _ = (keys.legacy or "").rpartition("/")
                yield folder + slash
