"""Which code does no command, page or plug-in reach?

    python tools/checks/reached.py

prints modules that no import leads to from the commands, pages and the package's front door, and public functions and
classes that nothing in the package names: only the papers' predictions, the tools or the tests do. There are none
(tests/every/test_reached.py): what serves papers, tools or tests alone stands with them.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).parents[1]))

from checks.modules import Module, module_at

ROOT = Path(__file__).resolve().parents[2]
HOUSE = "orrery"
FOUND_BY_NAME = frozenset(
    {"cli", "techniques", "studies", "causes", "readers", "families", "words", "pages", "benchmarks"}
)
"""Folders whose files are found because they are there."""


def modules(source: Path) -> dict[str, Path]:
    """Every module of a folder of sources, by its dotted name."""
    found: dict[str, Path] = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def reached(house: Mapping[str, Module], roots: tuple[str, ...]) -> set[str]:
    """The modules that importing the roots, and calling what they have, can lead to."""
    inside: dict[str, list[str]] = {}
    for name in house:
        folder = name.rpartition(".")[0]
        if folder.rpartition(".")[2] in FOUND_BY_NAME:
            inside.setdefault(folder, []).append(name)
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found or name not in house:
            continue
        found.add(name)
        waiting += [*house[name].imports, *inside.get(name, ()), name.rpartition(".")[0]]
    return found


def unnamed(house: Mapping[str, Module]) -> Iterator[str]:
    """Public functions and classes that no module names but in defining them, as ``module.name``."""
    used: set[str] = set().union(*(module.uses for module in house.values()))
    for name, module in house.items():
        yield from (f"{name}.{defined}" for defined in module.defines if defined not in used)


def unreached() -> tuple[list[str], list[str]]:
    """Modules of the house that nothing leads to, and the unnamed definitions of the others."""
    paths = modules(ROOT / "src" / HOUSE)
    house = {f"{HOUSE}.{name}".rstrip("."): module_at(path) for name, path in paths.items()}
    kept = reached(house, (HOUSE, f"{HOUSE}.__main__", f"{HOUSE}.cli"))
    return sorted(house.keys() - kept), sorted(unnamed({name: house[name] for name in kept}))


def main() -> None:
    """Print both lists."""
    alone, silent = unreached()
    print(f"{len(alone)} modules that nothing leads to:", *alone, sep="\n  ")
    print(f"{len(silent)} functions and classes that nothing names:", *silent, sep="\n  ")


if __name__ == "__main__":
    main()
