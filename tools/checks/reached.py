"""Which code does no command, page or plug-in reach?

    python tools/checks/reached.py

prints modules that no import leads to from the commands, pages and the package's front door, and public functions and
classes that nothing in the package names: only the papers' predictions, the tools or the tests do. There are none
(tests/every/test_reached.py): what serves papers, tools or tests alone stands with them.
"""

import ast
import gc
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOUSE = "orrery"
FOUND_BY_NAME = frozenset({"cli", "techniques", "studies", "causes", "readers", "families", "words", "pages"})
"""Folders whose files are found because they are there."""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def modules(source: Path) -> dict[str, Path]:
    """Every module of a folder of sources, by its dotted name."""
    found: dict[str, Path] = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def named_in(tree: ast.Module) -> Iterator[str]:
    """Dotted names that a module imports, or writes as a word to import later; none that only types need."""
    for node in nodes(tree, without_types=True):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def nodes(tree: ast.AST, *, without_types: bool = False) -> Iterator[ast.AST]:
    """All of a tree's nodes but those that say whether a name is read or written, in half the time of ``ast.walk``.

    ``without_types`` leaves out what stands under TYPE_CHECKING.
    """
    waiting: list[object] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, ast.AST) and not isinstance(node, ast.expr_context):
            if without_types and isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
                continue
            yield node
            waiting += node.__dict__.values()


def reached(trees: Mapping[str, ast.Module], roots: tuple[str, ...]) -> set[str]:
    """The modules that importing the roots, and calling what they have, can lead to."""
    inside: dict[str, list[str]] = {}
    for name in trees:
        folder = name.rpartition(".")[0]
        if folder.rpartition(".")[2] in FOUND_BY_NAME:
            inside.setdefault(folder, []).append(name)
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found or name not in trees:
            continue
        found.add(name)
        waiting += [*named_in(trees[name]), *inside.get(name, ()), name.rpartition(".")[0]]
    return found


def unnamed(trees: Mapping[str, ast.Module]) -> Iterator[str]:
    """Public functions and classes that no module names but in defining them, as ``module.name``."""
    names: set[str] = set()
    for tree in trees.values():
        for node in nodes(tree):
            if isinstance(node, ast.Name):
                names.add(node.id)
            elif isinstance(node, ast.Attribute):
                names.add(node.attr)
            elif isinstance(node, ast.alias):
                names.update((node.name, node.asname or node.name))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                names.add(node.value)
    for name, tree in trees.items():
        for node in tree.body:
            if (
                isinstance(node, DEFINITIONS)
                and not node.name.startswith("_")
                and node.name not in names
                and not _is_command(node)
            ):
                yield f"{name}.{node.name}"


def _is_command(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether a decorator hands a function to a group of commands."""
    return any(".command(" in ast.unparse(decorator) for decorator in node.decorator_list)


def unreached() -> tuple[list[str], list[str]]:
    """Modules of the house that nothing leads to, and the unnamed definitions of the others."""
    paths = modules(ROOT / "src" / HOUSE)
    house = _parsed({f"{HOUSE}.{name}".rstrip("."): path for name, path in paths.items()})
    kept = reached(house, (HOUSE, f"{HOUSE}.__main__", f"{HOUSE}.cli"))
    return sorted(house.keys() - kept), sorted(unnamed({name: house[name] for name in kept}))


def _parsed(paths: Mapping[str, Path]) -> dict[str, ast.Module]:
    """Trees by name. None of their million nodes is garbage: looking for some takes longer than making them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in paths.items()}
    finally:
        if was_on:
            gc.enable()


def main() -> None:
    """Print both lists."""
    alone, silent = unreached()
    print(f"{len(alone)} modules that nothing leads to:", *alone, sep="\n  ")
    print(f"{len(silent)} functions and classes that nothing names:", *silent, sep="\n  ")


if __name__ == "__main__":
    main()
