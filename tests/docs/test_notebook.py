"""The notebook on the Python interface: its cells are run in order, without Jupyter, and keep no outputs."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "docs").rglob("*.ipynb"))


def cells(path, kind):
    """The text of each cell of a kind, in order."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert (raw["nbformat"], raw["nbformat_minor"]) == (4, 5)
    return ["".join(cell["source"]) for cell in raw["cells"] if cell["cell_type"] == kind]


def test_there_is_a_notebook():
    assert [path.name for path in NOTEBOOKS] == ["python-interface.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_no_output_is_kept_and_every_cell_has_a_name_of_its_own(path):
    raw = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert len({cell["id"] for cell in raw}) == len(raw)
    assert not [c for c in raw if c["cell_type"] == "code" and (c["outputs"] or c["execution_count"])]
    assert cells(path, "markdown")[0].startswith("# ")


def test_its_cells_run_and_say_what_the_library_says(capsys):
    (path,) = NOTEBOOKS
    namespace = {}
    for number, text in enumerate(cells(path, "code"), 1):
        exec(compile(text, f"{path.name}, code cell {number}", "exec"), namespace)
    said = capsys.readouterr().out
    assert re.search(r"ms a token \(.* to .*\), bound by memory", said)
    rates = [e.output_tokens_per_s for e in namespace["estimates"]["h100-sxm"]]
    assert rates == sorted(rates)
    assert f"{namespace['answer'].tpot_s / namespace['fp8'].tpot_s:.2f}x faster" in said
    drawn = ElementTree.fromstring(namespace["drawing"]._repr_svg_())
    words = " ".join("".join(one.itertext()) for one in drawn.iter())
    assert all(device in words for device in namespace["DEVICES"])
    if namespace["figure"] is None:
        assert "pip install matplotlib" in said
    else:
        assert len(namespace["figure"].axes[0].lines) == len(namespace["DEVICES"])
