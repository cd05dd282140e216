"""Small wrong changes of a source file: one operator, bound, constant or condition at a time."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "+"),
    ast.Pow: ("**", "*"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
"""An operator, as written, and what stands in its place."""

CALLS = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "ceil": "floor",
    "floor": "ceil",
    "any": "all",
    "all": "any",
    "argmin": "argmax",
    "argmax": "argmin",
    "cumsum": "cumprod",
}
"""A function, and the one that stands in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A piece of a file (its span in characters), and what stands there instead."""

    path: str  # from the folder of the package
    line: int  # the first is 1
    whole: str  # the line as it stands
    start: int
    end: int
    old: str
    new: str

    @property
    def name(self) -> str:
        """The file and the line before and after: how it is named where it is known to change nothing."""
        return f"{self.path}: {self.whole.strip()} [{self.old} -> {self.new}]"

    def of(self, text: str) -> str:
        """The text with the change made."""
        assert text[self.start : self.end] == self.old, self
        return text[: self.start] + self.new + text[self.end :]


def changes_of(path: str, text: str) -> list[Change]:
    """Every change of a file, in its order."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = text.splitlines()

    def position(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def span(node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return position(node.lineno, node.col_offset), position(node.end_lineno, node.end_col_offset)

    found: list[Change] = []

    def add(line: int, start: int, end: int, new: str) -> None:
        old, whole = text[start:end], lines[line - 1]
        found.append(Change(path=path, line=line, whole=whole, start=start, end=end, old=old, new=new))

    def between(left: ast.expr, right: ast.expr, operator: ast.AST) -> None:
        if type(operator) in OPERATORS:
            old, new = OPERATORS[type(operator)]
            start, end = span(left)[1], span(right)[0]
            at = text.find(old, start, end)
            if at >= 0:
                add(right.lineno, at, at + len(old), new)

    for node in _computing(ast.parse(text)):
        match node:
            case ast.BinOp(left=left, op=op, right=right) if not _is_text(left) and not _is_text(right):
                between(left, right, op)
            case ast.Compare(left=left, ops=ops, comparators=rights):
                for one, op, other in zip([left, *rights], ops, rights, strict=False):
                    between(one, other, op)
            case ast.BoolOp(op=op, values=values):
                for one, other in pairwise(values):
                    between(one, other, op)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                add(node.lineno, span(node)[0], span(operand)[0], "")
            case ast.Constant(value=value) if type(value) in (int, float):
                add(node.lineno, *span(node), repr(value * 2 if abs(value) > 1 else value + 1))
            case ast.Constant(value=value) if type(value) is bool:
                add(node.lineno, *span(node), str(not value))
            case ast.Call(func=ast.Name(id=name) as function) if name in CALLS:
                add(node.lineno, *span(function), CALLS[name])
            case ast.Call(func=ast.Attribute(attr=name) as function) if name in CALLS:
                end = span(function)[1]
                add(node.lineno, end - len(name), end, CALLS[name])
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if not isinstance(test, ast.Compare):
                start, end = span(test)
                add(test.lineno, start, end, f"(not ({text[start:end]}))")
            case _:
                pass
    return sorted(found, key=lambda change: (change.start, change.end))


def _computing(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that compute: no annotations, texts, subscripts of types, messages of errors, checks of types, or of
    sequences that a ``zip`` is told are of one length."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not (isinstance(child, ast.keyword) and child.arg == "strict"):
                yield from _computing(child)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
