"""What is released, and whether it can be: a clean checkout in which version, changelog and tag agree."""

import re
import tomllib
from dataclasses import dataclass

from release.steps import ROOT, ask


class Refused(Exception):
    """One sentence that says what is in the way and what to do."""


@dataclass(frozen=True, slots=True)
class Release:
    """A version and the commit that it is made from."""

    version: str
    commit: str
    epoch: str
    """When the commit was made, in seconds since 1970: the time of every file in the archives."""
    is_dated: bool
    """Whether the changelog has a day for this version; without one this is a rehearsal."""


def read_release() -> Release:
    """Return what this checkout would release. Raises Refused."""
    commit = ask("git", "rev-parse", "HEAD")
    if commit.returncode:
        raise Refused("This is no git checkout with a commit; clone the repository and run make release there.")
    require_clean_checkout()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    require_one_version(version)
    is_dated = read_changelog(version)
    require_free_tag(f"v{version}", commit.stdout.strip(), is_dated=is_dated)
    require_pinned_images(is_dated=is_dated)
    epoch = ask("git", "log", "-1", "--format=%ct").stdout.strip()
    return Release(version, commit.stdout.strip(), epoch, is_dated)


def require_clean_checkout() -> None:
    """Raise Refused when a file differs from the last commit."""
    changed = ask("git", "status", "--porcelain").stdout.splitlines()
    if changed:
        first = changed[0][3:]
        raise Refused(
            f"Files differ from the last commit: {len(changed)}, first {first}; commit or stash them, then try again."
        )


def require_one_version(version: str) -> None:
    """Raise Refused when a file names another version than pyproject.toml."""
    different = ask(ROOT / "tools" / "version", "--check").stdout.splitlines()
    if different:
        raise Refused(f"pyproject.toml says {version}, but {different[0]}; run tools/version {version} and commit.")


def require_pinned_images(*, is_dated: bool) -> None:
    """Raise Refused when a release, not a rehearsal, would name an image by a tag alone, which can be moved."""
    unpinned = ask(ROOT / "tools" / "pin-images", "--check").stdout.splitlines()
    if unpinned and is_dated:
        raise Refused(f"{unpinned[0]}; run make lock-images where a registry can be reached, and commit.")


def read_changelog(version: str) -> bool:
    """Return whether the newest entry of the changelog, which has to be of this version, has a day. Raises Refused."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = re.search(r"^## \[?(?P<version>\d[^\s\]]*)\]?(?: - (?P<day>.*))?$", text, re.MULTILINE)
    newest = heading["version"] if heading else "nothing"
    if heading is None or newest != version:
        raise Refused(f"pyproject.toml says {version}, but CHANGELOG.md begins with {newest}; write what is new first.")
    return bool(re.fullmatch(r"\d{4}-\d{2}-\d{2}", heading["day"] or ""))


def require_free_tag(tag: str, commit: str, *, is_dated: bool) -> None:
    """Raise Refused when the tag names another commit, or a version that the changelog calls unreleased."""
    tagged = ask("git", "rev-parse", "--quiet", "--verify", f"refs/tags/{tag}^{{commit}}").stdout.strip()
    if tagged and tagged != commit:
        raise Refused(f"{tag} is the tag of another commit, {tagged[:12]}; raise the version with tools/version.")
    if tagged and not is_dated:
        raise Refused(f"{tag} is tagged, but CHANGELOG.md has no day for it; remove the tag or raise the version.")
