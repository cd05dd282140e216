"""Examples in docstrings are run too."""

import doctest
from importlib import import_module
from pathlib import Path

from battery import over

SOURCE = Path(__file__).resolve().parents[2] / "src"
WITH_EXAMPLES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>>" in path.read_text(encoding="utf-8")
]


@over(WITH_EXAMPLES)
def test_docstring_examples_hold(name):
    result = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.attempted
    assert not result.failed
