"""Memory as a bar: one letter a category, as wide as its share of the device."""

from rich.text import Text

from orrery.execution.memory import Memory

CATEGORIES = (
    ("W", "weights", "weights_bytes", "blue"), ("K", "cache", "kv_capacity_bytes", "green"),
    ("A", "activations", "activation_bytes", "yellow"), ("B", "buffers", "communication_bytes", "magenta"),
    ("X", "context", "context_bytes", "red"),
)  # fmt: skip
"""Letter, name, field, colour; what is left is free."""

LEAST_CELLS, MOST_CELLS = 10, 48
FIGURES_COLUMNS = 42
"""Room for the figures behind the bar."""


def legend() -> str:
    """What the letters mean."""
    return ", ".join(f"{letter} {name}" for letter, name, _, _ in CATEGORIES) + ", · free; GB of the fullest device"


def memory_bar(memory: Memory, columns: int) -> Text:
    """``[WWWWWKKKKK···] W 35.5 K 30.1 A 1.2 of 85.5`` for the fullest device."""
    width = max(LEAST_CELLS, min(MOST_CELLS, columns - FIGURES_COLUMNS))
    bar, figures = Text("["), Text()
    used = 0
    for letter, _, field, colour in CATEGORIES:
        size: float = getattr(memory, field)
        if size <= 0:
            continue
        cells = min(round(size / memory.capacity_bytes * width), width - used)
        used += cells
        bar.append(letter * cells, style=colour)
        figures.append(f" {letter} ").append(f"{size / 1e9:.3g}", style=colour)
    return bar.append("·" * (width - used) + "]").append_text(figures).append(f" of {memory.capacity_bytes / 1e9:.3g}")
