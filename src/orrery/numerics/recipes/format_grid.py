"""A number format as a grid: its element's points under scales that the format's rule takes from the array."""

from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.numerics.codec.rounding import round_to
from orrery.numerics.codec.scales import outer_scale, scales_between, scales_of
from orrery.numerics.element import Element
from orrery.numerics.format import Format
from orrery.numerics.quantise import as_format, codec_of
from orrery.numerics.recipes.grid import Fitted, Floats, Towards
from orrery.numerics.rounding import Rounding
from orrery.numerics.scaling import Level

SIDES = {"below": Rounding.DOWN, "above": Rounding.UP}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points:
    """The points of an element format, and how the grid is rounded to where nobody chooses a side."""

    element: Element
    rounding: Rounding
    rng: np.random.Generator

    def __call__(self, values: Floats, towards: Towards) -> Floats:
        """Each value's point."""
        return round_to(values, self.element, rounding=SIDES.get(towards, self.rounding), rng=self.rng)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FormatGrid:
    """A format, and how values are rounded to it."""

    format: Format
    rounding: Rounding = Rounding.NEAREST_EVEN
    seed: int = 0  # of stochastic rounding, which draws the same for every array that is fitted

    @property
    def bits_per_element(self) -> float:
        """The format's, scales included."""
        return self.format.bits_per_element

    def fit(self, values: Floats, clip_ratio: float = 1.0) -> Fitted:
        """Scales as the format's rule sets them; an outer scale is that of the whole tensor, not clipped."""
        element, scaling = codec_of(self.format), self.format.scaling
        points = Points(element=element, rounding=self.rounding, rng=np.random.default_rng(self.seed))
        if not scaling.levels:
            return Fitted(scale=np.ones(values.shape, dtype=np.float32), element=points)
        inner = scaling.levels[0]
        if scaling.zero_point:
            ends = [_shared(values, inner, end) * clip_ratio for end in (np.minimum, np.maximum)]
            found = scales_between(ends[0].astype(np.float32), ends[1].astype(np.float32), element, scaling)
            scale = _positive(found.decode, 1.0)
            origin = found.minimum if found.zero is None else -found.zero * scale
            return Fitted(scale=scale, element=points, origin=origin)
        sizes = np.abs(values)
        most = float(sizes.max(initial=0.0))
        outer = None
        if len(scaling.levels) > 1 and inner.scale is not None:
            outer = outer_scale(most, element, inner.scale)
        shared = (_shared(sizes, inner, np.maximum) * clip_ratio).astype(np.float32)
        return Fitted(scale=_positive(scales_of(shared, element, scaling, outer).decode, most or 1.0), element=points)

    def shared_sum(self, values: Floats) -> Floats:
        """Sums over those that share the innermost scale; each by itself where nothing is scaled."""
        levels = self.format.scaling.levels
        return _shared(values, levels[0], np.add) if levels else values


def grid(format: str | Format, *, rounding: Rounding = Rounding.NEAREST_EVEN, seed: int = 0) -> FormatGrid:
    """The grid of a format or of its name; ``seed`` is for stochastic rounding.

    >>> grid("mxfp4").bits_per_element
    4.25
    """
    known = as_format(format)
    codec_of(known)
    if known.scaling.rule == "extreme":
        raise ScenarioError(f"{known.name}: scales with a sign are not searched or compensated; write int4/32:fp16.")
    return FormatGrid(format=known, rounding=rounding, seed=seed)


def _positive(scale: Floats, instead: float) -> Floats:
    """Scales to divide by; a scale of zero, where nothing but zero can come out, is replaced."""
    return np.where(scale == 0, np.float32(instead), scale)


def _shared(values: Floats, level: Level, combine: np.ufunc) -> Floats:
    """Every element replaced by what ``combine`` makes of all that share a scale with it."""
    if level.share == "tensor":
        return np.full(values.shape, combine.reduce(values, axis=None))
    if level.share == "row":
        return np.broadcast_to(combine.reduce(values, axis=-1, keepdims=True), values.shape)
    rows, columns = level.share
    height, width = values.shape
    padded = np.pad(values, ((0, -height % rows), (0, -width % columns)))
    blocks = padded.reshape(len(padded) // rows, rows, -1, columns)
    whole = np.broadcast_to(combine.reduce(blocks, axis=(1, 3), keepdims=True), blocks.shape)
    return whole.reshape(padded.shape)[:height, :width]
