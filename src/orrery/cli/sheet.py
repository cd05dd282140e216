"""A table that is right at any width: columns that have no room go to a second line below their row, whole.

Numbers are never cut and never broken. Where the width does not hold all columns, words wrap first (columns with
``wraps``); then the columns that matter least leave the line, those with the highest ``minor`` and of equals the
rightmost first, and stand below each row as ``heading value``. The first column always stays.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Literal

from rich.console import Console, ConsoleOptions
from rich.text import Text

Cell = str | Text

GAP = 2
"""Blanks between columns."""

MIN_WORDS, MAX_WORD = 24, 30
"""A column of words is no narrower than the first where it could be wider; a longer word than the second is broken."""

INDENT = 3
"""Blanks before the second line of a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: ``wraps`` for words, ``minor`` for what may leave the line first."""

    heading: str
    justify: Literal["left", "right"]
    wraps: bool
    minor: int


class Sheet:
    """Rows under headings, printed with ``console.print``."""

    def __init__(self, *headings: str, title: str = "", left: int = 1, has_header: bool = True) -> None:
        """``left``: how many of the headings are of words, at the left; the others are numbers."""
        self.title, self.has_header = title, has_header
        self.columns: list[Column] = []
        self.rows: list[tuple[tuple[Text, ...], str]] = []
        for i, heading in enumerate(headings):
            self.add_column(heading, justify="left" if i < left else "right")

    def add_column(
        self, heading: str, *, justify: Literal["left", "right"] = "right", wraps: bool = False, minor: int = 0
    ) -> None:
        """One more column at the right."""
        self.columns.append(Column(heading=heading, justify=justify, wraps=wraps, minor=minor))

    def add_row(self, *cells: Cell, style: str | None = None) -> None:
        """One more row; missing cells at its end are blank."""
        texts = [cell if isinstance(cell, Text) else Text(cell) for cell in cells]
        texts += [Text("") for _ in range(len(self.columns) - len(texts))]
        self.rows.append((tuple(texts), style or ""))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        shown, widths = self._layout(options.max_width)
        below = [i for i in range(len(self.columns)) if i not in shown]
        if self.title:
            yield Text(self.title, style="italic", overflow="fold")
        else:
            yield Text("")
        if self.has_header and any(self.columns[i].heading for i in shown):
            headings = [Text("\n".join(wrap(self.columns[i].heading, w) or [""])) for i, w in widths.items()]
            yield from self._lines(headings, widths, "bold")
            yield Text(("-" if options.ascii_only else "─") * (sum(widths.values()) + GAP * (len(widths) - 1)))
        for cells, style in self.rows:
            yield from self._lines([cells[i] for i in shown], widths, style)
            yield from self._second(cells, below, options, style)
        yield Text("")

    def _layout(self, width: int) -> tuple[list[int], dict[int, int]]:
        """The columns that stay on the line, and the width of each: what matters most is placed first."""
        placed: dict[int, int] = {}
        for i in sorted(range(len(self.columns)), key=lambda i: (i > 0, self.columns[i].minor, i)):
            least = self._least(i)
            if not placed or sum(placed.values()) + least + GAP * len(placed) <= width:
                placed[i] = least
        shown = sorted(placed)
        room = width - GAP * (len(shown) - 1) - sum(placed.values())
        return shown, self._spread({i: placed[i] for i in shown}, max(room, 0), width)

    def _spread(self, least: dict[int, int], room: int, width: int) -> dict[int, int]:
        """Deal the remaining width to columns of text, from the left, as far as they need it; then to long headings."""
        found = dict(least)
        natural_widths = [(i, self._natural(i)) for i in found if self.columns[i].wraps]
        natural_widths += [(i, len(self.columns[i].heading)) for i in found if self.has_header]
        for i, width_wanted in natural_widths:
            more = max(0, min(room, width_wanted - found[i]))
            found[i], room = found[i] + more, room - more
        return {i: min(w, width) for i, w in found.items()}

    def _natural(self, index: int) -> int:
        """Width of a column without line breaks."""
        cells = (line for row, _ in self.rows for line in row[index].split("\n"))
        return max((line.cell_len for line in cells), default=0)

    def _least(self, index: int) -> int:
        """Minimum width of a column: whole numbers, and the longest word of its texts."""
        column = self.columns[index]
        heading = max(map(len, column.heading.split()), default=0) if self.has_header else 0
        natural = self._natural(index)
        if not column.wraps:
            return max(natural, heading)
        longest = max((len(word) for row, _ in self.rows for word in row[index].plain.split()), default=0)
        return max(heading, min(natural, max(MIN_WORDS, min(longest, MAX_WORD))))

    def _lines(self, cells: Sequence[Text], widths: dict[int, int], style: str) -> Iterator[Text]:
        """One row as lines of text; words wrap, the first lines of numbers stand beside the first of words."""
        pieces = [_broken(cell, width) for cell, width in zip(cells, widths.values(), strict=True)]
        for at in range(max(map(len, pieces))):
            line = Text(style=style, no_wrap=True, overflow="ignore")
            for (index, width), piece in zip(widths.items(), pieces, strict=True):
                part = piece[at] if at < len(piece) else Text("")
                blank = " " * (width - part.cell_len)
                line.append_text(Text(" " * GAP) if line.plain or index != next(iter(widths)) else Text(""))
                line = (
                    line.append(blank).append_text(part)
                    if self._is_right(index)
                    else line.append_text(part).append(blank)
                )
            line.rstrip()
            yield line

    def _is_right(self, index: int) -> bool:
        return self.columns[index].justify == "right"

    def _second(
        self, cells: Sequence[Text], below: Sequence[int], options: ConsoleOptions, style: str
    ) -> Iterator[Text]:
        """Cells that have no column: ``heading value``, as many to a line as fit."""
        line = Text(style=style, no_wrap=True, overflow="ignore")
        between = ", " if options.ascii_only else " · "
        for i in below:
            if not cells[i].plain:
                continue
            item = Text(f"{self.columns[i].heading} " if self.columns[i].heading else "", style="dim")
            item = Text.assemble(item, Text(" ").join(cells[i].split("\n")))
            if line.plain and line.cell_len + len(between) + item.cell_len > options.max_width:
                yield line
                line = Text(style=style, no_wrap=True, overflow="ignore")
            if not line.plain and INDENT + item.cell_len > options.max_width:
                for piece in _broken(item, options.max_width - INDENT):
                    yield Text(" " * INDENT, style=style, no_wrap=True, overflow="ignore").append_text(piece)
                continue
            line.append(between if line.plain else " " * INDENT).append_text(item)
        if line.plain:
            yield line


def _broken(cell: Text, width: int) -> list[Text]:
    """A cell as lines of at most that width, broken between words."""
    if cell.cell_len <= width and "\n" not in cell.plain:
        return [cell]
    lines = cell.wrap(Console(width=width), width, overflow="fold")
    for line in lines:
        line.rstrip()
    return list(lines)
