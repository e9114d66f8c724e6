"""Pictures for docs/: with 256 colours, at a third of the size. Needs Pillow."""

from pathlib import Path

from PIL import Image  # pyright: ignore[reportMissingImports]

COMMON, RARE = 192, 64
"""Colours of many pixels, and colours far apart from each other, such as that of a mark in a legend."""


def write_smaller(picture: Path, target: Path) -> None:
    """Write a picture with a palette, without dithering, which makes files larger."""
    with Image.open(picture) as image:
        pixels = image.convert("RGB")
    common = (pixels.quantize(COMMON, Image.Quantize.MEDIANCUT, kmeans=1).getpalette() or [])[: 3 * COMMON]
    rare = (pixels.quantize(RARE, Image.Quantize.MAXCOVERAGE).getpalette() or [])[: 3 * RARE]
    palette = Image.new("P", (1, 1))
    palette.putpalette(common + rare)
    pixels.quantize(palette=palette, dither=Image.Dither.NONE).save(target, optimize=True)
