"""Mutants of a Python file: the operators of mutmut, and those that it does not have."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import libcst as cst  # pyright: ignore[reportMissingImports]
from libcst.metadata import MetadataWrapper, PositionProvider  # pyright: ignore[reportMissingImports]
from mutmut.mutation import mutators  # pyright: ignore[reportMissingImports]

from mutants.mutant import Mutant

LEFT_OUT = {mutators.operator_assignment, mutators.operator_symmetric_string_methods_swap}
"""Operators whose mutants fail in any test that reaches them, so that they say nothing, or mean the same program."""
LOGGERS = {"log", "_log", "logger", "_logger", "LOG", "_LOG", "logging"}
NEVER = {"len", "isinstance", "cast", "TypeVar", "getLogger"}
"""Calls whose arguments have no other value that passes as the same program."""


def list_mutants(root: Path, path: str) -> Iterator[Mutant]:
    """Yield all mutants of a Python file, in the order of the text."""
    text = (root / path).read_text(encoding="utf-8")
    wrapper = MetadataWrapper(cst.parse_module(text))
    finder = _Finder()
    wrapper.visit(finder)
    lines = text.splitlines()
    for node, instead, operator, position in finder.found:
        yield Mutant(
            path=path,
            line=position.start.line,
            last_line=position.end.line,
            column=position.start.column + 1,
            operator=operator,
            before=wrapper.module.code_for_node(node).strip(),
            after=wrapper.module.code_for_node(instead).strip(),
            source=lines[position.start.line - 1].strip(),
            write=lambda node=node, instead=instead: write_module(wrapper.module, node, instead),
        )


def write_module(module: cst.Module, node: cst.CSTNode, instead: cst.CSTNode) -> str:
    """Return the module's text with one node replaced."""
    changed: Any = module.deep_replace(node, instead)
    return changed.code


Change = tuple[cst.CSTNode, cst.CSTNode]
"""A node, and what stands there instead."""


def negate(node: cst.If | cst.While | cst.CompIf) -> Iterable[Change]:
    """Turn a condition round."""
    test = node.test
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return  # mutmut leaves the `not` out
    yield test, cst.UnaryOperation(cst.Not(), in_parentheses(test))


def drop_operand(node: cst.BooleanOperation) -> Iterable[Change]:
    """Leave out one side of `and` or `or`."""
    yield node, in_parentheses(node.left)
    yield node, in_parentheses(node.right)


def drop_call(node: cst.Expr) -> Iterable[Change]:
    """Leave out a call whose result is not used."""
    called = node.value.expression if isinstance(node.value, cst.Await) else node.value
    if isinstance(called, cst.Call):
        yield node, cst.Pass()


def drop_value(node: cst.Return) -> Iterable[Change]:
    """Return None in place of a value."""
    if node.value is not None and not (isinstance(node.value, cst.Name) and node.value.value == "None"):
        yield node.value, cst.Name("None")


def in_parentheses(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=[cst.LeftParen(), *node.lpar], rpar=[*node.rpar, cst.RightParen()])


OWN = [
    ((cst.If, cst.While, cst.CompIf), negate),
    ((cst.BooleanOperation,), drop_operand),
    ((cst.Expr,), drop_call),
    ((cst.Return,), drop_value),
]


def list_changes(node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode, str]]:
    """Yield what can be changed at a node itself, with the operator's name."""
    for kind, operator in mutators.mutation_operators:
        if not isinstance(node, kind) or operator in LEFT_OUT:
            continue
        changed: Sequence[cst.CSTNode] = list(operator(node))
        for instead in changed[:1] if isinstance(node, cst.BaseString) else changed:
            if not (isinstance(node, cst.Call) and lacks_position(node, instead)):
                yield node, instead, operator.__name__.removeprefix("operator_")
    for kinds, operator in OWN:
        if isinstance(node, kinds):
            yield from ((*change, operator.__name__) for change in operator(node))


def lacks_position(call: cst.Call, instead: cst.CSTNode) -> bool:
    """Return whether a call lost an argument that has no keyword: most such calls fail in any test."""
    if not isinstance(instead, cst.Call) or len(instead.args) == len(call.args):
        return False
    kept = {id(argument) for argument in instead.args}
    return any(argument.keyword is None for argument in call.args if id(argument) not in kept)


class _Finder(cst.CSTVisitor):
    """Finds what can be changed, except texts for people, annotations and what only runs at the import."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[cst.CSTNode, cst.CSTNode, str, Any]] = []
        self._raises = 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        if _is_left_out(node):
            return False
        self._raises += isinstance(node, cst.Raise)
        if not (self._raises and isinstance(node, cst.BaseString)):
            self._change(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self._raises -= isinstance(original_node, cst.Raise)

    def _change(self, node: cst.CSTNode) -> None:
        for before, instead, operator in list_changes(node):
            self.found.append((before, instead, operator, self.get_metadata(PositionProvider, before)))


def _is_left_out(node: cst.CSTNode) -> bool:
    """Return whether nothing of a node is changed."""
    if isinstance(node, cst.Annotation | cst.Decorator | cst.Import | cst.ImportFrom | cst.Assert):
        return True
    if isinstance(node, cst.Expr):
        return isinstance(node.value, cst.BaseString) or _is_left_out(node.value)
    if not isinstance(node, cst.Call):
        return False
    if isinstance(node.func, cst.Attribute) and isinstance(node.func.value, cst.Name):
        return node.func.value.value in LOGGERS
    return isinstance(node.func, cst.Name) and node.func.value in NEVER
