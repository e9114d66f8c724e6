"""The results of `make test-servers`: the file that keeps them, and the tables of docs/servers.md that show them."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from support.s3.servers import MORE_SERVERS, SERVERS

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parent.parent.parent / "docs" / "servers.md"
BEGIN, END = "<!-- Written by `make test-servers`: begin -->", "<!-- end -->"
TITLES = {
    "gofakes3": "gofakes3",
    "seaweedfs": "SeaweedFS",
    "juicefs": "JuiceFS gateway",
    "minio": "MinIO",
    "ceph": "Ceph RGW",
    "swift": "Swift (s3api of OpenStack)",
    "rclone": "rclone `serve s3`",
    "s3proxy": "s3proxy (filesystem-nio2)",
    "localstack": "LocalStack",
    "s3s-fs": "s3s-fs",
    "garage": "Garage",
    "nginx": "nginx, before versitygw",
    "apache": "Apache, before versitygw",
    "versitygw": "versitygw",
    "moto": "moto",
}
Result = Mapping[str, Any]
Results = Mapping[str, Result]


def read_results() -> dict[str, Any]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def record(results: Results) -> None:
    """Put these results in the place of older ones of the same servers; what was not run replaces nothing."""
    kept = read_results()
    kept |= {name: result for name, result in results.items() if "reason" not in result or name not in kept}
    kept = {name: kept[name] for name in (*SERVERS, *MORE_SERVERS) if name in kept}
    RESULTS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(fill_in(PAGE.read_text(encoding="utf-8"), kept), encoding="utf-8")


def fill_in(page: str, results: Results) -> str:
    """Return the page with the tables of these results between its marks."""
    marked = re.compile(f"(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", re.DOTALL)
    text = "\n".join(compose(results))
    return marked.sub(lambda _: f"\n{text}\n\n", page)


def compose(results: Results) -> Iterator[str]:
    """Yield the lines of all tables."""
    limits = Limits()
    checks = dict.fromkeys(each["check"] for result in results.values() for each in result.get("findings", ()))
    rows = [[check, *(judge(*each, check, limits) for each in results.items())] for check in checks]
    yield from ("### Checks in each direction", "", *compose_table(["check", *titles(results)], merge_ok(rows)), "")
    yield from ("### The servers' own limits", "")
    yield from limits.tell()
    yield from ("", "### What each operation honours", "")
    asked = dict.fromkeys(what for result in results.values() for what in result.get("behaviour", {}))
    rows = [
        [what, *(result.get("behaviour", {}).get(what, "not run") for result in results.values())] for what in asked
    ]
    yield from (*compose_table(["feature", *titles(results)], rows), "")
    yield from ("### What was run", "")
    runs = [[TITLES[name], result["version"], result["when"], tell_run(result)] for name, result in results.items()]
    yield from compose_table(["server", "version", "when", "run"], runs)


def merge_ok(rows: list[list[str]]) -> list[list[str]]:
    """Return the rows with those that are ok at every server as one, the first."""
    fine = [row for row in rows if {*row[1:]} == {"ok"}]
    rest = [row for row in rows if row not in fine]
    return [[", ".join(row[0] for row in fine), *fine[0][1:]], *rest] if fine else rest


class Limits:
    """The servers' own limits, numbered in the order in which the tables name them."""

    def __init__(self) -> None:
        self._servers: dict[str, dict[str, None]] = {}

    def number(self, sentence: str, server: str) -> int:
        """Return the number of a limit that a server has."""
        self._servers.setdefault(sentence, {})[shorten(server)] = None
        return list(self._servers).index(sentence) + 1

    def tell(self) -> Iterator[str]:
        """Yield a line a limit, with the servers that have it."""
        for number, (sentence, servers) in enumerate(self._servers.items(), 1):
            yield f"{number}. {', '.join(servers)}: {sentence}"


def judge(name: str, result: Result, check: str, limits: Limits) -> str:
    """Return the cell of one check of one server, over all directions: ok, the numbers of its limits, or wrong."""
    found = [each for each in result.get("findings", ()) if each["check"] == check]
    if not found:
        return "not run"
    if any(each["wrong"] for each in found):
        return "**wrong**"
    numbers = dict.fromkeys(str(limits.number(limit, name)) for each in found for limit in each["limits"])
    return f"limit {', '.join(numbers)}" if numbers else "ok"


def shorten(name: str) -> str:
    """Return the first word of a server's title."""
    return TITLES[name].partition(" ")[0].rstrip(",")


def titles(results: Results) -> list[str]:
    return [shorten(name) for name in results]


def tell_run(result: Result) -> str:
    if "reason" in result:
        return f"not run: {result['reason']}"
    wrong = sum(bool(each["wrong"]) for each in result["findings"])
    return f"{len(result['findings'])} checks, {wrong} wrong, {result['seconds']:.0f} s"


def compose_table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines]
