"""The picture of the house is drawn from the import contract, and is current."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]


def test_the_drawing_is_current():
    done = subprocess.run(
        [sys.executable, "tools/house.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_drawing_shows_every_room():
    texts = {t.text for t in ElementTree.parse(ROOT / "docs" / "house.svg").iter() if t.tag.endswith("text")}
    rooms = {p.name for p in (ROOT / "src" / "orrery").iterdir() if (p / "__init__.py").exists()}
    assert rooms <= texts
