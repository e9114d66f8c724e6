"""The options of `rowferry plan` that name a bucket, and the side of a plan that they make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rowferry.errors import PlanError, UsageError
from rowferry.plan import LegacySide, ProductionSide, Side

_URL = re.compile(r"(?P<server>https?://[^/]+(?:/.*)?)/(?P<bucket>[^/]+)/?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SideOptions:
    """What the command line says of one side."""

    kind: type[LegacySide | ProductionSide]
    url: str | None
    region: str | None


def choose_side(options: SideOptions, document: Mapping[str, Any]) -> Side:
    """Return a side from the options, or from a plan without entries. Raises UsageError where neither names it."""
    name, given = options.kind.name, options.url
    if given is None and name in document:
        return _convert_side(document[name], options.kind)
    if given is None:
        example = "https://fra1.digitaloceanspaces.com/my-bucket, or s3://my-bucket on AWS"
        raise UsageError(f"Which is the {name} bucket? Add --{name} with its URL, such as {example}.")
    fields = parse_bucket(given, name)
    if options.region is not None:
        fields["region"] = options.region
    return _convert_side(fields, options.kind)


def _convert_side(fields: object, kind: type[Side]) -> Side:
    import msgspec

    from rowferry.plan_file import explain

    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"In [{kind.name}], {explain(str(error))}.") from error
    except PlanError as error:
        raise UsageError(f"{error}.") from error


def parse_bucket(url: str, name: str) -> dict[str, str]:
    """Return `bucket` and `endpoint_url` of `s3://bucket`, `bucket` or `https://server/bucket`."""
    shown = re.sub("//[^/@]*@", "//***@", url)
    bucket, slash, folder = url.removeprefix("s3://").partition("/")
    if url.startswith("s3://"):
        if folder:
            raise UsageError(f"--{name} is {shown!r}: name the bucket alone, as s3://{bucket}; its folders are found.")
        return {"bucket": bucket}
    if "://" not in url:
        if slash:
            raise UsageError(f"--{name} is {shown!r}: write https://server/bucket, or s3://bucket on AWS.")
        return {"bucket": url}
    if (found := _URL.fullmatch(url)) is None:
        raise UsageError(f"--{name} is {shown!r}: write the server and then the bucket, such as https://server/bucket.")
    return {"bucket": found["bucket"], "endpoint_url": found["server"]}
