"""A prompt on a processor's vector registers: narrow lanes, narrower weights, dropped tokens. [agile-quant-2023]"""

from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, whole
from orrery.hardware.device import Device
from orrery.kernels.lowbit.lanes import VectorCores, cores_of, product_s

WIDE = 16
WAYS = ((16, 16, False), (8, 8, False), (4, 8, False), (4, 4, True), (4, 4, False))
"""Bits of weights and activations that are tried, and whether two 4-bit products share a lane."""

HARDWARE = ("cores", "clock_hz", "register_bits", "vector_units", "memory_bytes_per_s")
"""Sizes that a device says itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """A decoder's layers, the prompt, and the cores; the defaults are a 7B model on four large cores of a phone."""

    hidden: int = 4096
    ffn: int = 11008
    layers: int = 32
    heads: int = 32
    tokens: int = 128
    drop_frac: float = 0.1  # of the tokens, behind ``dropped_after`` layers
    dropped_after: int = 4
    cores: int = 4
    clock_hz: float = 2.4e9
    register_bits: int = 128
    vector_units: int = 2
    dot_products: int = 1  # 0: products are widened
    memory_bytes_per_s: float = 34e9


def run(request: Run) -> tuple[Row, ...]:
    """A row for each pair of widths, with every token and with some dropped."""
    sizes: Sizes = request.sizes
    if not 0.0 <= sizes.drop_frac < 1.0:
        raise ScenarioError(f"set: drop_frac = {sizes.drop_frac:g}; write 0 to below 1.")
    if min(sizes.clock_hz, sizes.memory_bytes_per_s) <= 0.0:
        raise ScenarioError("set: clock_hz and memory_bytes_per_s are above 0.")
    cores = _cores(sizes, request.device)
    whole_s = prompt_s(sizes, cores, WIDE, WIDE, 1.0)
    rows = list[Row]()
    for weights, activations, packed in WAYS:
        for retained in dict.fromkeys((1.0, 1.0 - sizes.drop_frac)):
            time_s = prompt_s(sizes, cores, weights, activations, retained, is_packed=packed)
            rows.append(
                {
                    "weight_bits": weights,
                    "activation_bits": activations,
                    "packed": int(packed),
                    "kept_frac": retained,
                    "prompt_s": time_s,
                    "speedup": whole_s / time_s,
                }
            )
    return tuple(rows)


def _cores(sizes: Sizes, device: Device | None) -> VectorCores:
    """The cores of a device, or those that the sizes say."""
    if device is not None:
        if written := [f for f in HARDWARE if getattr(sizes, f) != getattr(Sizes(), f)]:
            raise ScenarioError(f"set: {', '.join(written)}: {device.name} says it; leave device or the sizes out.")
        return cores_of(device, has_dot_products=bool(sizes.dot_products))
    return VectorCores(
        num_cores=whole("cores", sizes.cores, most=1024),
        clock_hz=sizes.clock_hz,
        register_bits=whole("register_bits", sizes.register_bits, least=32, most=4096),
        num_units=whole("vector_units", sizes.vector_units, most=16),
        has_dot_products=bool(sizes.dot_products),
        memory_bytes_per_s=sizes.memory_bytes_per_s,
    )


def prompt_s(
    sizes: Sizes,
    cores: VectorCores,
    weight_bits: int,
    activation_bits: int,
    kept_frac: float,
    *,
    is_packed: bool = True,
) -> float:
    """Seconds of all layers of a prompt; behind the first few only the kept tokens. Attention stays in 16 bits."""
    hidden, ffn = whole("hidden", sizes.hidden), whole("ffn", sizes.ffn)
    heads, tokens = whole("heads", sizes.heads, most=hidden), whole("tokens", sizes.tokens, most=10**6)
    shapes = [(hidden, hidden)] * 4 + [(ffn, hidden)] * 2 + [(hidden, ffn)]
    total_s = 0.0
    for layer in range(whole("layers", sizes.layers, most=1000)):
        rows = tokens if layer < sizes.dropped_after else max(1, round(tokens * kept_frac))
        total_s += sum(
            product_s(rows, n, k, weight_bits, activation_bits, cores, is_packed=is_packed) for n, k in shapes
        )
        total_s += 2.0 * heads * product_s(rows, rows, hidden // heads, WIDE, WIDE, cores)
    return total_s


EXPERIMENT = Experiment(
    name="narrow-lanes",
    question="What do 8 and 4 bits gain on a processor's vector registers, with and without dropped tokens?",
    run=run,
    num_steps=1,
    claims=("agile-quant",),
    sizes=Sizes,
    keys=("weight_bits", "activation_bits", "packed", "kept_frac"),
    reads=("device",),
)
