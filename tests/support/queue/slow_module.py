"""A module of users that takes long to import."""

import io
import time
from typing import Any

time.sleep(0.5)


def count_words(stream: io.BufferedReader) -> dict[str, Any]:
    """Count words line by line."""
    return {"words": sum(len(line.split()) for line in stream)}
