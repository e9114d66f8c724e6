"""The hosts of the large scene: twelve with four processes each, one sick in each way."""

from dataclasses import dataclass

from rowferry import __version__

MINUTE = 60


@dataclass(frozen=True, slots=True)
class Host:
    """How a host has been doing."""

    name: str
    entries_per_second: float = 120
    """Of both queues of the running migration."""
    failed_share: float = 0.03
    p95_seconds: float = 0.21
    throttled_share: float = 0
    cpu: float = 0.35
    """Of a core, by each process."""
    idle_for: float = 0
    """Seconds since it finished an entry last."""
    unseen_for: float = 0
    """Seconds since it was scraped last."""
    lost: int = 0
    """Processes that were lost twelve minutes ago."""
    version: str = __version__


HOSTS = (
    Host("web-01"),
    Host("web-02", unseen_for=4 * MINUTE, version="0.0.9"),
    Host("web-03", 57, p95_seconds=0.89, throttled_share=0.18),
    Host("web-04", 113, failed_share=0.31),
    Host("web-05", 58, lost=2),
    Host("web-06", 117),
    Host("web-07", 17, p95_seconds=4.15, cpu=0.06),
    Host("web-08", 122),
    Host("web-09", 118, idle_for=50 * MINUTE, cpu=0.01),
    Host("web-10", 124, cpu=0.99),
    Host("rowferry-worker-7c9f8b6d4-x2x9k", 119),
    Host("ip-10-0-113-240.ap-southeast-2.compute.internal-node-a1b2c3d4", 121),
)


def slots() -> list[tuple[str, int, int]]:
    """Return which of 100 batches each host finishes, from first to last: what is idle finishes none."""
    busy = [host for host in HOSTS if not host.idle_for]
    total = sum(host.entries_per_second for host in busy)
    found: list[tuple[str, int, int]] = []
    reached, shared = 0.0, 0
    for host in busy:
        reached += host.entries_per_second
        last = round(100 * reached / total)
        found.append((host.name, shared, last - 1))
        shared = last
    return found
