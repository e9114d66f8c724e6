"""The examples of hypothesis depend on the test alone."""

from hypothesis.internal.conjecture.providers import HypothesisProvider


def test_no_literal_of_a_source_file_becomes_an_example() -> None:
    """Else each commit, and the path of the checkout, would change them: see `conftest.py`."""
    assert not list(HypothesisProvider(None)._local_constants)
