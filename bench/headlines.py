"""What the first screen of docs/speed.md and the README say of speed, each with the target that has the answer."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Headline:
    """A question, and where its answer is: the target of a bench, by what it measures; `{}` stands for the figure."""

    question: str
    bench: str
    target: str
    answer: str = "{}"


HEADLINES = (
    Headline("Small objects a second, one worker process", "copy", "entries/s, one worker without a flag"),
    Headline("… against s5cmd, which checks nothing", "copy", "entries/s against s5cmd's copies/s"),
    Headline("… against rclone", "copy", "entries/s against rclone's copies/s"),
    Headline("… against rclone with all checks off", "copy", "the same, rclone with all checks off"),
    Headline("… against boto3 in 256 threads", "copy", "entries/s against boto3 in 256 threads"),
    Headline("20 kB streamed between two servers, against rclone", "stream", "20 kB streamed, against rclone"),
    Headline("1 MB streamed, against rclone", "stream", "1 MB streamed, MB/s against rclone"),
    Headline("100 MB streamed, against rclone", "stream", "100 MB streamed, MB/s against rclone"),
    Headline("… against rclone with all checks off", "stream", "100 MB streamed, MB/s against rclone unchecked"),
    Headline(
        "… CPU a megabyte, against rclone (less is better)", "stream", "100 MB streamed, CPU a MB against rclone", "{}"
    ),
    Headline("1 GB streamed, against rclone", "stream", "1 GB streamed, MB/s against rclone"),
    Headline(
        "1 GiB over a slow link, against rclone with 16 streams", "link", "the same against rclone with 16 streams"
    ),
    Headline(
        "Eight workers against eight times one, held by latency alone (32 in flight, 400 ms)",
        "scale",
        "pace of 8 workers, as a share of 8 times that of one",
    ),
    Headline(
        "Default settings against the best fixed ones, 70 ms",
        "defaults",
        "defaults against the best fixed setting, 70 ms",
    ),
    Headline(
        "Share of what a server allows that 16 workers use, 1,000 writes/s",
        "throttled",
        "share of the bound, 1,000 writes/s, 16 workers",
    ),
    Headline(
        "Back at 0.9 of the pace after the server was away for 60 s",
        "outage",
        "seconds from the server's return to 0.9 of the pace, 60 s, refuses connections",
        "after {}",
    ),
    Headline(
        "Memory of a worker process that copies a million entries",
        "memory",
        "memory of the worker over the run, at its largest",
    ),
    Headline("CPU of PostgreSQL for an entry", "copy", "CPU of PostgreSQL per entry"),
    Headline(
        "… for a refresh of the dashboard over 24 hours, of a queue of 6,000,000 batches",
        "large_queue",
        "CPU, refresh, 24 h, jit off, now",
    ),
    Headline(
        "Enqueue of 10,000,000 rows, against `select count(*)`",
        "enqueue",
        "enqueue of 10,000,000 rows, half of them legacy, against count(*)",
        "{} its time",
    ),
    Headline("Objects tagged, against boto3 in 128 threads", "tag", "objects/s against boto3 in 128 threads"),
    Headline(
        "Objects inspected, against `xargs`, `curl`, `zcat` and `wc`",
        "inspect",
        "objects/s against xargs -P100, curl, zcat, wc",
    ),
)


@dataclass(frozen=True, slots=True)
class PaceRow:
    """A row of the README's comparison with other tools: their paces on the server that a target is of."""

    what: str
    bench: str
    target: str
    figure: str
    contestants: tuple[str, ...]
    cells: str


PACE_ROWS = (
    PaceRow(
        "small objects/s, copied within a server",
        "copy",
        "entries/s against rclone's copies/s",
        "entries_per_second",
        ("rowferry", "rclone", "rclone unchecked", "s5cmd"),
        "{}, and their rows | {}; unchecked {} | {}; unchecked | – | –",
    ),
    PaceRow(
        "100 MB objects, MB/s, between two servers",
        "stream",
        "100 MB streamed, MB/s against rclone",
        "megabytes_per_second",
        ("rowferry, 100 MB", "rclone, 100 MB", "rclone unchecked, 100 MB"),
        "{} | {}; unchecked {} | – | – | –",
    ),
    PaceRow(
        "1 GB objects, MB/s, between two servers",
        "stream",
        "1 GB streamed, MB/s against rclone",
        "megabytes_per_second",
        ("rowferry, 1 GB", "rclone, 1 GB"),
        "{} | {} | – | – | –",
    ),
)
