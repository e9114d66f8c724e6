"""Where things stand in this checkout."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The checkout: the folder of pyproject.toml."""
TESTS = ROOT / "tests"
