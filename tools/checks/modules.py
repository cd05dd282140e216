"""The text of a Python module as the checks ask about it: each file is parsed and walked once, whoever asks."""

import ast
import gc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """Names and texts of one module."""

    imports: set[str] = field(default_factory=set[str])
    """Dotted names that it imports, or writes as a word to import later; none that only types need."""
    uses: set[str] = field(default_factory=set[str])
    """Names that it writes anywhere but in defining them."""
    defines: tuple[str, ...] = ()
    """Public functions and classes at its top, but those that a decorator makes a command."""
    undocumented: tuple[str, ...] = ()
    """The module and its public classes, functions and methods that have no docstring."""
    names: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Line and name of every class, function, argument and variable."""
    texts: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Line and text of every docstring and string below a constant."""


def nodes(tree: ast.AST, aside: list[ast.AST] | None = None) -> Iterator[ast.AST]:
    """All of a tree's nodes but those that say whether a name is read or written, in a third of ``ast.walk``'s time.

    What stands under TYPE_CHECKING goes to ``aside`` where that is given.
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if aside is not None and type(node) is ast.If and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            aside.append(node)
            continue
        yield node
        for name in node._fields:
            if name == "ctx":
                continue
            value = getattr(node, name)
            if type(value) is list:
                waiting += [one for one in value if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST):
                waiting.append(value)


@cache
def module_at(path: Path) -> Module:
    """The module in a file. None of its nodes is garbage: looking for some would take longer than making them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return module_in(path.read_text(encoding="utf-8"))
    finally:
        if was_on:
            gc.enable()


def module_in(text: str) -> Module:
    """The module of a text."""
    tree = ast.parse(text)
    found = Module(
        defines=tuple(node.name for node in _public(tree) if not _is_command(node)),
        undocumented=tuple(_undocumented(tree)),
    )
    for_types: list[ast.AST] = []
    for node in nodes(tree, for_types):
        for note in NOTED.get(type(node), ()):
            note(node, found)
    for branch in for_types:
        for node in nodes(branch):
            for note in NOTED.get(type(node), ()):
                if note is not _imports:
                    note(node, found)
    return found


def _name(node: ast.Name, into: Module) -> None:
    into.uses.add(node.id)
    if type(node.ctx) is ast.Store:
        into.names.append((node.lineno, node.id))


def _attribute(node: ast.Attribute, into: Module) -> None:
    into.uses.add(node.attr)


def _argument(node: ast.arg, into: Module) -> None:
    into.names.append((node.lineno, node.arg))


def _definition(node: Definition, into: Module) -> None:
    into.names.append((node.lineno, node.name))


def _alias(node: ast.alias, into: Module) -> None:
    into.uses.update((node.name, node.asname or node.name))


def _word(node: ast.Constant, into: Module) -> None:
    if isinstance(node.value, str) and node.value.isidentifier():
        into.uses.add(node.value)


def _text(node: ast.Expr, into: Module) -> None:
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        into.texts.append((node.lineno, node.value.value.strip()))


def _imports(node: ast.Import | ast.ImportFrom | ast.Constant, into: Module) -> None:
    """Also a dotted name that is written as a word, to import later."""
    if isinstance(node, ast.Import):
        into.imports.update(alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        if node.module:
            into.imports.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
    elif isinstance(node.value, str) and " " not in node.value:
        into.imports.add(node.value)


NOTED: Mapping[type[ast.AST], tuple[Callable[[Any, Module], None], ...]] = {
    ast.Name: (_name,),
    ast.Attribute: (_attribute,),
    ast.arg: (_argument,),
    ast.alias: (_alias,),
    ast.Constant: (_word, _imports),
    ast.Expr: (_text,),
    ast.Import: (_imports,),
    ast.ImportFrom: (_imports,),
    **dict.fromkeys(DEFINITIONS, (_definition,)),
}
"""What is written down of each kind of node."""


def _public(tree: ast.Module | ast.ClassDef) -> Iterator[Definition]:
    return (node for node in tree.body if isinstance(node, DEFINITIONS) and not node.name.startswith("_"))


def _undocumented(tree: ast.Module) -> Iterator[str]:
    if ast.get_docstring(tree, clean=False) is None:
        yield "module"
    for node in _public(tree):
        if ast.get_docstring(node, clean=False) is None:
            yield node.name
        if isinstance(node, ast.ClassDef) and not node.bases:  # else a method may override a documented one
            for method in _public(node):
                if isinstance(method, ast.FunctionDef) and ast.get_docstring(method, clean=False) is None:
                    yield f"{node.name}.{method.name}"


def _is_command(node: Definition) -> bool:
    """Whether a decorator hands a function to a group of commands."""
    return any(".command(" in ast.unparse(decorator) for decorator in node.decorator_list)
