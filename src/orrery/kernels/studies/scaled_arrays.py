"""Systolic arrays on the same silicon: dequantised elements, scaled groups, shifts for multipliers. [mixpe-2024]"""

from collections.abc import Iterator
from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, numbers, whole
from orrery.kernels.lowbit.systolic import Array, Element, array_on, element_circuit
from orrery.kernels.lowbit.systolic import Run as Pass
from orrery.kernels.lowbit.systolic import run as multiply


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Products as outputs x inputs x how many, comma-separated, the widths, and the array that dequantises elements."""

    shapes: str = "4096x4096x4,11008x4096x2,4096x11008x1"
    tokens: int = 2048
    weight_bits: str = "4"
    activation_bits: int = 8
    group_elements: int = 128
    side: int = 128  # the other arrays have the same silicon
    clock_hz: float = 1e9


def run(request: Run) -> tuple[Row, ...]:
    """A row for each width of weights and each element: the array's side, cycles, energy, and both over the first's."""
    sizes: Sizes = request.sizes
    if not sizes.clock_hz > 0.0:
        raise ScenarioError(f"set: clock_hz = {sizes.clock_hz:g}; write a number above 0.")
    widths = [int(bits) for bits in numbers("weight_bits", sizes.weight_bits, least=1, most=32)]
    return tuple(row for bits in widths for row in _rows(sizes, bits, _shapes(sizes.shapes)))


def _rows(sizes: Sizes, bits: int, shapes: list[tuple[int, int, int]]) -> Iterator[Row]:
    activation_bits = whole("activation_bits", sizes.activation_bits, most=32)
    area_m2 = element_circuit(Element.ELEMENT_SCALED, bits, activation_bits).area_m2
    area_m2 *= whole("side", sizes.side, most=4096) ** 2
    base = _sum(sizes, array_on(area_m2, Element.ELEMENT_SCALED, bits, activation_bits), shapes)
    for element in Element:
        array = array_on(area_m2, element, bits, activation_bits)
        found = _sum(sizes, array, shapes)
        yield {
            "weight_bits": bits,
            "element": element.value,
            "side": array.side,
            "cycles": found.num_cycles,
            "time_s": found.num_cycles / sizes.clock_hz,
            "energy_j": found.energy_j,
            "compute_j": found.compute_j,
            "on_chip_j": found.on_chip_j,
            "off_chip_j": found.off_chip_j,
            "speedup": base.num_cycles / found.num_cycles,
            "energy_ratio": base.energy_j / found.energy_j,
        }


def _sum(sizes: Sizes, array: Array, shapes: list[tuple[int, int, int]]) -> Pass:
    """All products, one after the other."""
    tokens, group = whole("tokens", sizes.tokens, most=10**7), whole("group_elements", sizes.group_elements)
    done = [(count, multiply(tokens, n, k, array, group)) for n, k, count in shapes]
    return Pass(
        num_cycles=sum(count * one.num_cycles for count, one in done),
        compute_j=sum(count * one.compute_j for count, one in done),
        on_chip_j=sum(count * one.on_chip_j for count, one in done),
        off_chip_j=sum(count * one.off_chip_j for count, one in done),
    )


def _shapes(text: str) -> list[tuple[int, int, int]]:
    parts = [part.strip().split("x") for part in text.split(",")]
    fit = all(len(part) == 3 and all(p.isascii() and p.isdigit() and 0 < len(p) < 8 for p in part) for part in parts)
    found = [(int(n), int(k), int(count)) for n, k, count in parts] if fit else []
    if not found or not all(min(shape) for shape in found):
        raise ScenarioError(
            f"set: shapes = {text[:80]!r}; write OUTPUTSxINPUTSxCOUNT, comma-separated, such as 4096x4096x4."
        )
    return found


EXPERIMENT = Experiment(
    name="scaled-arrays",
    question="What does an array of narrow products gain where groups are scaled, or shifts multiply, on one silicon?",
    run=run,
    num_steps=1,
    claims=("mixpe",),
    sizes=Sizes,
    keys=("weight_bits", "element"),
    curve=("weight_bits", "speedup"),
)
