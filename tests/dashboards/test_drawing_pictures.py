"""What the pictures of docs/ must say, how they are made smaller, and how the operator in them mends a migration."""

from pathlib import Path

import pytest

from drawing.__main__ import PICTURES, PUBLISHED
from drawing.mending import commands_of, type_in_shell


def test_what_is_typed_is_what_the_board_says() -> None:
    columns = ("then type this", ["b 'c d'", "a", "a"]), ("reason", ["x", "y", "z"])
    answer = [{"fields": [{"name": name, "values": values} for name, values in columns]}]
    board = {"panels": [{"title": "Errors by reason", "id": 7}, {"title": "Hosts", "id": 8}]}
    assert commands_of({"board": board, "answers": {"7": answer, "8": []}}) == ["b 'c d'", "a"]


def test_a_shell_reads_what_is_typed(tmp_path: Path) -> None:
    type_in_shell(f"rowferry --version > '{tmp_path}/in one word'")
    assert (tmp_path / "in one word").read_text().startswith("rowferry")
    with pytest.raises(SystemExit, match=r"(?s)exit 3.*lost"):
        type_in_shell("echo lost >&2; exit 3")


def test_the_pictures_of_docs_are_as_small_as_they_are_written() -> None:
    palette = 3  # the colour type of a PNG, in its byte 25; source: PNG specification, IHDR
    for name in (*PUBLISHED, "report"):
        assert (PICTURES / f"{name}.png").read_bytes()[25] == palette, f"{name}.png: run `make pictures`"
        assert (PICTURES / f"{name}.png").stat().st_size < 160_000, name


def test_a_smaller_picture_has_no_bands(tmp_path: Path) -> None:
    """Two gradients of some hundred colours, as behind the numbers of a dashboard, on a background that stays exact."""
    image = pytest.importorskip("PIL.Image", reason="requirements/pictures.txt is not installed: run `make pictures`")
    from drawing.smaller import write_smaller

    picture = image.new("RGB", (600, 400), (24, 27, 31))
    for x in range(240):
        for y in range(100):
            shade = (x + y) // 3
            picture.putpixel((x, y), (60 + shade // 2, 140 + shade // 3, 60 + shade // 4))
            picture.putpixel((x + 300, y), (225 + shade // 6, 20 + shade // 4, 20 + shade // 2))
    marks = [(250, 222, 42), (255, 152, 48), (184, 119, 217), (242, 73, 92)]  # of few pixels, as in a legend
    for index, colour in enumerate(marks):
        picture.paste(colour, (20 + 20 * index, 300, 34 + 20 * index, 304))
    picture.save(tmp_path / "large.png")
    write_smaller(tmp_path / "large.png", tmp_path / "small.png")
    with image.open(tmp_path / "small.png") as small:
        assert small.mode == "P"
        written = small.convert("RGB")
    pairs = zip(picture.tobytes(), written.tobytes(), strict=True)
    assert [written.getpixel((25 + 20 * index, 302)) for index in range(len(marks))] == marks
    assert max(abs(before - after) for before, after in pairs) <= 2
    assert written.getpixel((599, 399)) == (24, 27, 31)
