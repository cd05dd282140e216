"""Memory as a bar: one letter a category, as wide as its share of the device."""

from rich.text import Text

from orrery.base.units import text
from orrery.execution.memory import Memory

LEAST_COLUMNS = 20

CATEGORIES = (
    ("weights", "weights_bytes", "blue"), ("cache", "kv_capacity_bytes", "green"),
    ("activations", "activation_bytes", "yellow"), ("buffers", "communication_bytes", "magenta"),
    ("context", "context_bytes", "red"),
)  # fmt: skip
"""Name, field, colour; what is left is free."""


def memory_bar(memory: Memory, columns: int) -> Text:
    """``[WWWWWCCCCC····] weights 35.5 GB, cache 30 GB, …`` for the fullest device."""
    width = max(LEAST_COLUMNS, columns // 3)
    bar, words = Text("["), []
    used = 0
    for name, field, colour in CATEGORIES:
        size: float = getattr(memory, field)
        if size <= 0:
            continue
        cells = min(round(size / memory.capacity_bytes * width), width - used)
        used += cells
        bar.append(name[0].upper() * cells, style=colour)
        words.append(f"{name} {text(size, 'bytes')}")
    bar.append("·" * (width - used) + "] " + ", ".join(words) + f", of {text(memory.capacity_bytes, 'bytes')}")
    return bar
