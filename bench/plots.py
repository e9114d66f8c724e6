"""Draws the plots of docs/ from bench/results/*.json, with matplotlib; a bench that has a `draw` gets one."""

from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl  # pyright: ignore[reportMissingImports]

mpl.use("Agg")
mpl.rcParams |= {"svg.hashsalt": "rowferry", "svg.fonttype": "none"}  # The same results make the same small file.

from matplotlib import pyplot as plt  # noqa: E402  # pyright: ignore[reportMissingImports]

from bench import load_bench  # noqa: E402
from bench.page import Result, read_results  # noqa: E402
from bench.record import RESULTS  # noqa: E402

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
GREEN, BLUE, RED, GREY = "#56a64b", "#3274d9", "#e02f44", "#8e8e8e"


def plot_all(results: Path = RESULTS, pictures: Path = PICTURES) -> Iterator[Path]:
    """Draw bench_NAME.svg for every result whose bench has a `draw(axis, result)`, and yield the paths."""
    for result in read_results(results):
        if hasattr(load_bench(result["name"]), "draw"):
            yield plot(result, pictures)


def plot(result: Result, pictures: Path) -> Path:
    """Draw one result."""
    figure, axis = plt.subplots(figsize=(6.4, 3.2))
    axis.tick_params(labelsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    load_bench(result["name"]).draw(axis, result)
    figure.tight_layout()
    path = pictures / f"bench_{result['name']}.svg"
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path
