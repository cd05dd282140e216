"""What every source file keeps to: a docstring, a size, and no loose ends."""

import re
import subprocess
from pathlib import Path

from battery import over

from checks.modules import module_at

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
LONGEST = 500  # lines of one file in src

LOOSE_ENDS = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError)\b")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:root|home|tmp|work|Users|opt|mnt)/\w")
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}


def tracked() -> list[Path]:
    """Every text file under version control, or every source file where there is no git."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.splitlines() if listed.returncode == 0 else []
    found = [ROOT / n for n in names] or SOURCES
    return [p for p in found if p.is_file() and p.suffix in {".py", ".toml", ".md", ".svg", ".sh", ".yml", ""}]


def shown(path: Path) -> str:
    """A file's name from the root of the repository."""
    return str(path.relative_to(ROOT))


@over(SOURCES, named=shown)
def test_every_public_name_says_what_it_is(path):
    silent = module_at(path).undocumented
    assert not silent, f"{shown(path)}: no docstring on {', '.join(silent)}"


@over(SOURCES, named=shown)
def test_a_file_stays_small_and_has_a_plain_name(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST
    assert path.stem not in VAGUE


def test_no_loose_ends():
    found = [
        f"{shown(path)}:{number}: {line.strip()[:80]}"
        for path in tracked()
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if LOOSE_ENDS.search(line) or MACHINE_PATH.search(line)
    ]
    assert not found, "\n".join(found)


def test_the_formatter_s_output_is_accepted():
    """A few places may keep a layout by hand (a matrix drawn as one); more is a second house style."""
    kept = [
        f"{shown(path)}:{number}"
        for path in tracked()
        if path != Path(__file__) and path.suffix == ".py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if "# fmt: " in line
    ]
    assert len(kept) < 100, "\n".join(kept)


OWN_UNITS = re.compile(r"\.\d%\}|\{100(\.0)? ?\* ?[^{}]*\} ?%(?! points)|\} ?us\b")
"""Percent and microseconds that a file spells by itself; ``percent`` and ``text`` of base/units.py spell them alike."""


@over(SOURCES, named=shown)
def test_percent_and_microseconds_are_spelt_in_one_place(path):
    """``30.8 %`` and ``8.2 µs`` everywhere, never ``30.8%`` beside them nor ``8.2 us``."""
    if path != ROOT / "src/orrery/base/units.py":
        found = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if OWN_UNITS.search(line)]
        assert not found, f"{shown(path)}: write percent(…) or text(…): {found[0]}"
