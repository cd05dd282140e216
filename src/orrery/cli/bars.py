"""Memory as a bar: one letter a category, as wide as its share of the device."""

from rich.text import Text

from orrery.execution.memory import Memory

CATEGORIES = (
    ("W", "weights", "weights_bytes", "blue"),
    ("K", "cache", "kv_capacity_bytes", "green"),
    ("A", "activations", "activation_bytes", "yellow"),
    ("B", "buffers", "communication_bytes", "magenta"),
    ("X", "context", "context_bytes", "red"),
)
"""Letter, name, field, colour; what is left is free."""

MIN_CELLS, MAX_CELLS = 10, 48


def legend() -> str:
    """Legend of the letters."""
    return ", ".join(f"{letter} {name}" for letter, name, _, _ in CATEGORIES) + ", · free; GB of the fullest device"


def memory_bar(memory: Memory, columns: int) -> Text:
    """``[WWWWWKKKKK···] W 35.5 K 30.1 A 1.2 of 85.5`` for the fullest device."""
    sizes: list[tuple[str, float, str]] = [
        (letter, getattr(memory, field), colour) for letter, _, field, colour in CATEGORIES
    ]
    figures = Text()
    for letter, size, colour in sizes:
        if size > 0:
            figures.append(f" {letter} ").append(f"{size / 1e9:.3g}", style=colour)
    figures.append(f" of {memory.capacity_bytes / 1e9:.3g}")
    width = max(MIN_CELLS, min(MAX_CELLS, columns - figures.cell_len - 2))
    bar, used = Text("["), 0
    for letter, size, colour in sizes:
        cells = max(0, min(round(size / memory.capacity_bytes * width), width - used))
        used += cells
        bar.append(letter * cells, style=colour)
    return bar.append("·" * (width - used) + "]").append_text(figures)
