"""Words around numbers."""


def count(number: int, one: str, many: str) -> str:
    """Return `1 batch`, `1,234 batches`."""
    return f"{number:,} {one if number == 1 else many}"


def count_batches(number: int) -> str:
    """Return `1 batch`, `1,234 batches`."""
    return count(number, "batch", "batches")


def count_entries(number: int) -> str:
    """Return `1 entry`, `1,234 entries`."""
    return count(number, "entry", "entries")
