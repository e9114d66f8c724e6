"""The matrix tries each version that is here, none twice, and is green only if enough of them ran."""

from matrix.legs import FULL, LEAST, SHORT, Leg, choose_legs, judge_matrix

PYTHONS = {"3.11", "3.12", "3.13", "3.14"}
VERSIONS = {"14", "15", "16", "17", "18"}
BOTH, SQL = "(versions or pythons) and not soak", "(versions) and not soak"


def choose(pythons: set[str] = PYTHONS, versions: set[str] = VERSIONS, *, short: bool = True) -> list[Leg]:
    return list(choose_legs(SHORT if short else FULL, short=short, pythons=pythons, versions=versions, own="3.11"))


def test_where_all_is_here_each_version_is_tried_once() -> None:
    assert choose() == [
        Leg("3.11", "15", SQL),
        Leg("3.12", "14", BOTH),
        Leg("3.13", "16", BOTH),
        Leg("3.14", "17", BOTH),
    ]
    assert judge_matrix(choose()) is None


def test_without_maven_and_go_the_matrix_is_too_small_and_says_so() -> None:
    legs = choose(pythons={"3.11"}, versions={"15", "18"})
    assert legs == [Leg("3.11", "15", SQL)]
    assert judge_matrix(legs) == (
        f"Too few combinations of Python and PostgreSQL ran, 1 of at least {LEAST}: "
        "see the lines NOT RUN, and install Maven and Go"
    )
