"""Draw the house from the rule that guards it: the layers contract in pyproject.toml.

    python tools/house.py            writes docs/house.svg
    python tools/house.py --check    fails when docs/house.svg is stale

A floor is a band, a room a box; what a room is for is the first line of its own docstring. A file may import only
from bands below its own; rooms side by side do not see each other.
"""

import argparse
import ast
import re
import sys
import textwrap
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "house.svg"

WIDTH, MARGIN, FLOOR, GAP, ROOF, GROUND = 900, 30, 58, 6, 66, 26
LETTER = 5.4  # width of one letter of the small print, in pixels


def floors() -> list[list[str]]:
    """The rooms of every floor, top first, as the import contract lists them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["type"] == "layers")
    return [re.split(r"\s*[|:]\s*", layer) for layer in layers]


def purpose(room: str) -> str:
    """What a room is for: the first line of its package's docstring."""
    source = (ROOT / "src" / "orrery" / room / "__init__.py").read_text()
    doc = ast.get_docstring(ast.parse(source))
    if not doc:
        raise SystemExit(f"src/orrery/{room}/__init__.py has no docstring; its first line is the room's sign.")
    return doc.splitlines()[0]


def wall(level: int, levels: int) -> str:
    """Plaster above, stone below: a grey-brown that darkens towards the ground."""
    shade = level / max(1, levels - 1)
    return "#{:02x}{:02x}{:02x}".format(*(round(a + (b - a) * shade) for a, b in ((251, 224), (248, 214), (241, 197))))


def box(room: str, x: float, y: float, width: float, fill: str) -> list[str]:
    """One room: its name, and its purpose in at most two lines of small print."""
    middle = x + width / 2
    lines = textwrap.wrap(purpose(room), max(20, int((width - 20) / LETTER)))[:2]
    top = y + (28 if len(lines) < 2 else 22)
    parts = [
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{FLOOR - GAP}" rx="2" fill="{fill}"/>',
        f'<text x="{middle:.1f}" y="{top - 5}" class="room">{escape(room)}</text>',
    ]
    parts += [
        f'<text x="{middle:.1f}" y="{top + 10 + 12 * n}" class="sign">{escape(line)}</text>'
        for n, line in enumerate(lines)
    ]
    return parts


def draw() -> str:
    """The whole picture as SVG text."""
    house = floors()
    height = ROOF + FLOOR * len(house) + GROUND
    edge, middle = WIDTH - MARGIN, WIDTH / 2
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        ' aria-label="The floors of orrery, each importing only from those below">',
        "<style>text{font-family:ui-sans-serif,system-ui,sans-serif;text-anchor:middle}"
        ".room{font-size:15px;font-weight:600;fill:#29313a}.sign{font-size:10.5px;fill:#5d6670}"
        ".name{font-size:20px;font-weight:600;fill:#fff}rect{stroke:#b9ad98}</style>",
        f'<path d="M{MARGIN - 16} {ROOF - 4} L{middle} 6 L{edge + 16} {ROOF - 4} Z" fill="#35526b"/>',
        f'<text x="{middle}" y="{ROOF - 16}" class="name">orrery</text>',
    ]
    for level, rooms in enumerate(house):
        width = (edge - MARGIN - GAP * (len(rooms) - 1)) / len(rooms)
        for column, room in enumerate(rooms):
            x = MARGIN + column * (width + GAP)
            out += box(room, x, ROOF + level * FLOOR, width, wall(level, len(house)))
    out.append(f'<path d="M0 {height - GROUND + 4} H{WIDTH}" stroke="#6b7f5a" stroke-width="5"/>')
    return "\n".join([*out, "</svg>", ""])


def main() -> int:
    """Write the picture, or with ``--check`` say whether the one in docs is current."""
    parser = argparse.ArgumentParser(description="Draw docs/house.svg from the import contract.")
    parser.add_argument("--check", action="store_true", help="fail when the picture in docs is stale")
    if not parser.parse_args().check:
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(draw())
        return 0
    if PICTURE.exists() and PICTURE.read_text() == draw():
        return 0
    print("docs/house.svg is stale; run `make docs`.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
