"""The matrix tries each version that is here, none twice, and is green only if enough of them ran."""

from matrix.legs import FULL, LEAST, SHORT, Leg, choose_legs, judge_matrix

PYTHONS = {"3.11", "3.12", "3.13", "3.14"}
VERSIONS = {"14", "15", "16", "17", "18"}
BOTH, SQL, PYTHON = "(versions or pythons) and not soak", "(versions) and not soak", "(pythons) and not soak"


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


def test_without_maven_the_pythons_are_tried_with_the_embedded_postgresql() -> None:
    assert choose(versions={"15", "18"}) == [
        Leg("3.11", "15", SQL),
        Leg("3.12", "18", PYTHON),
        Leg("3.13", "18", PYTHON),
        Leg("3.14", "18", PYTHON),
    ]


def test_without_go_each_postgresql_is_tried_with_the_python_that_is_here() -> None:
    assert choose(pythons={"3.11"}) == [Leg("3.11", version, SQL) for version in ("15", "14", "16", "17")]


def test_the_full_matrix_has_no_leg_twice() -> None:
    legs = choose(pythons={"3.11"}, short=False)
    assert legs == [Leg("3.11", version) for version in ("14", "15", "16", "17", "18")]
    assert len(choose(short=False)) == 8


def test_without_maven_and_go_the_matrix_is_too_small_and_says_so() -> None:
    legs = choose(pythons={"3.11"}, versions={"15", "18"})
    assert legs == [Leg("3.11", "15", SQL)]
    assert judge_matrix(legs) == (
        f"Too few combinations of Python and PostgreSQL ran, 1 of at least {LEAST}: "
        "see the lines NOT RUN, and install Maven and Go"
    )
