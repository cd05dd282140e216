"""Speed of a format on a device: the arithmetic that really runs, products as the kernels time them, and the cast."""

from dataclasses import dataclass, replace

from orrery import kernels
from orrery.base.cost import Interval
from orrery.base.errors import OutOfRange
from orrery.execution.formats import activations_for, compute_format
from orrery.hardware.device import Device
from orrery.kernels.elementwise.rule import KINDS, bytes_each
from orrery.kernels.ops import Elementwise, Gemm
from orrery.numerics.element import Element
from orrery.numerics.families.bipolar import Bipolar
from orrery.numerics.families.fixed import Fixed
from orrery.numerics.families.lookup import Lookup
from orrery.numerics.families.minifloat import Minifloat
from orrery.numerics.families.posit import Posit
from orrery.numerics.families.power import PowerExponent, PowerOfTwo
from orrery.numerics.format import Format
from orrery.numerics.registry import get_format, known_formats

BASE = "bf16"
"""Baseline of the gains."""

WIDTH = 8192
PREFILL_TOKENS, DECODE_TOKENS = 8192, 16
"""Rows of activations in the two products of WIDTH x WIDTH weights."""

SIXTEEN = 16

FAMILIES = (Minifloat, Fixed, Bipolar, Lookup, Posit, PowerOfTwo, PowerExponent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One product of so many rows of activations, and what casting them adds."""

    tokens: int
    product_s: float
    interval: Interval  # around it
    cast_s: float  # activations read in 16 bits and written in the format; 0 where they stay wide
    speedup_ratio: float  # of both together, against BASE

    @property
    def time_s(self) -> float:
        """With the cast as a kernel of its own."""
        return self.product_s + self.cast_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """A format on a device."""

    runs_as: str  # the format whose kernel answers
    activations: str
    rate: str  # the row of the device's peak table; "" = its vector units
    peak_flops_per_s: float
    memory_ratio: float  # bytes of BASE over bytes of this format
    prefill: Product
    decode: Product
    cast_bytes_per_element: float
    cast_flops_per_element: float
    scales_per_element: float  # worked out and stored for activations; 0 where a row or tensor shares one


def registered(format: Format) -> Format | None:
    """The registered format that this is, or whose numbers it spells out; None where no kernel knows it.

    Of several, the one that multiplies as it is stored; of mixed ones none, which are of two operands.
    """
    if found := known_formats().get(format.name):
        return found
    same = [
        f
        for f in known_formats().values()
        if f.kind != "mixed"
        and f.element
        and format.element
        and f.scaling == format.scaling
        and _nameless(f.element) == _nameless(format.element)
    ]
    return min(same, key=lambda f: f.weight_only, default=None)


def _nameless(element: Element) -> Element:
    """To tell whether two elements are the same numbers."""
    return replace(element, name="") if isinstance(element, FAMILIES) else element


def speed_of(format: str, device: Device, engine: str, base: Speed | None) -> Speed:
    """Times by the kernels floor, against those of ``base`` (itself where None)."""
    stored = get_format(format)
    runs = get_format(compute_format(format, activations_for(format, device), device))
    is_cast = not runs.weight_only and runs.element_bits < SIXTEEN
    rate, peak = _peak(runs, device)
    return Speed(
        runs_as=runs.name,
        activations=runs.name if is_cast else BASE if runs.weight_only else runs.name,
        rate=rate,
        peak_flops_per_s=peak,
        memory_ratio=get_format(BASE).bytes_per_element / stored.bytes_per_element,
        prefill=_product(runs.name, is_cast, PREFILL_TOKENS, device, engine, base and base.prefill),
        decode=_product(runs.name, is_cast, DECODE_TOKENS, device, engine, base and base.decode),
        cast_bytes_per_element=bytes_each("quantise", runs.name) if is_cast else 0.0,
        cast_flops_per_element=KINDS["quantise"].flops if is_cast else 0.0,
        scales_per_element=1.0 / runs.block_elements if is_cast and runs.block_elements else 0.0,
    )


def _peak(runs: Format, device: Device) -> tuple[str, float]:
    try:
        return device.peak_flops_per_s(runs.rates)
    except OutOfRange:
        return "", device.vector_flops_per_s


def _product(format: str, is_cast: bool, tokens: int, device: Device, engine: str, base: Product | None) -> Product:
    op = Gemm(m=tokens, n=WIDTH, k=WIDTH, format=format, quantises_input=False)
    product_s = float(kernels.predict(op, device, engine).time_s)
    cast = Elementwise(kind="quantise", tokens=tokens, width=WIDTH, format=format)
    cast_s = float(kernels.predict(cast, device, engine).time_s) if is_cast else 0.0
    ratio = base.time_s / (product_s + cast_s) if base else 1.0
    interval = kernels.spread(op, device, engine).around(product_s)
    return Product(tokens=tokens, product_s=product_s, interval=interval, cast_s=cast_s, speedup_ratio=ratio)
