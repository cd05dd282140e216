"""The distribution is called orrery-ai: the name orrery on the package index belongs to an unrelated project."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [
    ROOT / "README.md",
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "src").rglob("*.py"),
    *(ROOT / "src").rglob("*.html"),
]
FOREIGN = re.compile(r"pip install[^\n`]*?(?<![\w-])orrery(?!-ai)\b")


def test_no_page_or_message_installs_the_other_project():
    assert FOREIGN.search("pip install 'orrery[web]'")
    assert not FOREIGN.search("pip install 'orrery-ai[web]'")
    offenders = [str(path.relative_to(ROOT)) for path in TEXTS if FOREIGN.search(path.read_text())]
    assert not offenders


def test_distribution_and_command_names():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == "orrery-ai"
    assert project["scripts"] == {"orrery": "orrery.cli.main:main"}
