"""Tests of the floors know nothing of the papers' distribution, which may not be installed."""

import ast
from pathlib import Path

from battery import over

from checks.modules import nodes

TESTS = Path(__file__).resolve().parents[1]
FILES = sorted(path for path in TESTS.rglob("*.py") if "papers" not in path.relative_to(TESTS).parts[:1])
DISTRIBUTION = "orrery_papers"


def imported(text: str) -> list[str]:
    """Imports of the distribution, ``line N`` each; texts without its name are not read further."""
    if DISTRIBUTION not in text:
        return []
    found: list[str] = []
    for node in nodes(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                found += [f"line {node.lineno}" for alias in names if alias.name.split(".")[0] == DISTRIBUTION]
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] == DISTRIBUTION:
                found.append(f"line {node.lineno}")
            case _:
                pass
    return found


@over(FILES, named=lambda path: str(path.relative_to(TESTS)))
def test_floors_are_tested_without_the_papers(path: Path) -> None:
    found = imported(path.read_text(encoding="utf-8"))
    assert not found, f"{', '.join(found)}: imports {DISTRIBUTION}; the test belongs into tests/papers"


def test_an_import_is_seen_wherever_it_stands() -> None:
    text = "import orrery_papers.a\ndef f():\n    from orrery_papers import b\n    import orrery_papers_of_others\n"
    assert sorted(imported(text)) == ["line 1", "line 3"]
    assert imported('"orrery_papers"') == imported("from orrery import papers") == []
