"""One token of a GPT whose weights and cache are multiplied in the memory's banks. [pim-gpt-2023]

Products run in the banks, everything else in a companion chip, one after the other. Beside it stands the least time of
a device that reads all weights once.
"""

from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, numbers, whole
from orrery.hardware.banked_memory import BankedMemory

SCORE_FLOPS, NORM_FLOPS, ACTIVATION_FLOPS = 10.0, 8.0, 15.0
"""Operations of the companion chip for a score, a normed element and an activation."""

FFN_RATIO, NORMS = 4, 2
"""Inner features of a GPT's feed-forward part over its own, and norms of a layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Comma-separated layers x width of GPTs, the context, and the memory; the defaults are eight GDDR6 channels."""

    shapes: str = "12x768,24x1024,48x1600"
    num_vocabulary: int = 50257
    num_head: int = 64  # features of a head
    context_tokens: int = 512
    num_channels: str = "8"
    num_banks: int = 16
    column_bytes: float = 32.0
    column_s: float = 1e-9
    row_bytes: float = 2048.0
    open_s: float = 12e-9
    close_s: float = 12e-9
    channel_bytes_per_s: float = 32e9
    open_j: float = 1.8e-9
    read_j_per_bytes: float = 12e-12
    pin_j_per_bytes: float = 44e-12
    standby_w: float = 0.3
    companion_flops_per_s: float = 384e9
    element_bytes: float = 2.0


def run(request: Run) -> tuple[Row, ...]:
    """A row for each GPT and number of channels."""
    sizes: Sizes = request.sizes
    if min(sizes.companion_flops_per_s, sizes.channel_bytes_per_s, sizes.element_bytes) <= 0.0:
        raise ScenarioError("set: companion_flops_per_s, channel_bytes_per_s and element_bytes are above 0.")
    rows = list[Row]()
    for layers, width in _shapes(sizes.shapes):
        for channels in numbers("num_channels", sizes.num_channels, least=1, most=4096):
            time_s, energy_j = token(sizes, memory_of(sizes, int(channels)), layers, width)
            row: dict[str, float | int | str] = {
                "layers": layers,
                "width": width,
                "num_channels": int(channels),
                "token_s": time_s,
                "token_j": energy_j,
                "tokens_per_s": 1.0 / time_s,
            }
            if request.device is not None:
                weights = layers * 12 * width**2 + sizes.num_vocabulary * width
                least_s = weights * sizes.element_bytes / request.device.memory_bandwidth_bytes_per_s
                row |= {"device_least_s": least_s, "speedup_at_most": least_s / time_s}
            rows.append(row)
    return tuple(rows)


def _shapes(text: str) -> list[tuple[int, int]]:
    parts = [part.strip().split("x") for part in text.split(",")]
    fit = all(len(part) == 2 and all(p.isascii() and p.isdigit() and 0 < len(p) < 6 for p in part) for part in parts)
    found = [(int(layers), int(width)) for layers, width in parts] if fit else []
    if not found or not all(layers and width for layers, width in found):
        raise ScenarioError(
            f"set: shapes = {text[:80]!r}; write LAYERSxWIDTH, comma-separated, such as 12x768,24x1024."
        )
    return found


def memory_of(sizes: Sizes, num_channels: int) -> BankedMemory:
    """The memory with so many channels."""
    return BankedMemory(
        num_channels=num_channels,
        num_banks=whole("num_banks", sizes.num_banks, most=4096),
        column_bytes=sizes.column_bytes,
        column_s=sizes.column_s,
        row_bytes=sizes.row_bytes,
        open_s=sizes.open_s,
        close_s=sizes.close_s,
        channel_bytes_per_s=sizes.channel_bytes_per_s,
        element_bytes=sizes.element_bytes,
        open_j=sizes.open_j,
        read_j_per_bytes=sizes.read_j_per_bytes,
        pin_j_per_bytes=sizes.pin_j_per_bytes,
    )


def token(sizes: Sizes, memory: BankedMemory, layers: int, width: int) -> tuple[float, float]:
    """Seconds and joules of one token against ``context_tokens``."""
    size, context = whole("num_head", sizes.num_head, most=width), whole("context_tokens", sizes.context_tokens)
    heads, ffn = max(1, width // size), FFN_RATIO * width
    products = [(3 * width, width, 1), (width, width, 1), (ffn, width, 1), (width, ffn, 1)]
    products += [(context, size, heads), (size, context, heads)]
    whole_model = [(*shape, layers) for shape in products]
    whole_model.append((whole("num_vocabulary", sizes.num_vocabulary, most=10**7), width, 1, 1))
    time_s = sum(count * memory.product_s(n, k, times) for n, k, times, count in whole_model)
    time_s += layers * memory.write_s(2.0 * heads * size * memory.element_bytes)
    flops = layers * (SCORE_FLOPS * heads * context + NORM_FLOPS * NORMS * width + ACTIVATION_FLOPS * ffn)
    time_s += flops / sizes.companion_flops_per_s
    energy_j = sum(count * memory.product_j(n, k, times) for n, k, times, count in whole_model)
    return time_s, energy_j + sizes.standby_w * time_s


EXPERIMENT = Experiment(
    name="memory-banks",
    question="How long does a token take where weights are multiplied in the memory's banks, and what does it draw?",
    run=run,
    num_steps=1,
    claims=("pim-gpt",),
    sizes=Sizes,
    reads=("device",),
    keys=("layers", "width", "num_channels"),
    curve=("num_channels", "token_s"),
)
