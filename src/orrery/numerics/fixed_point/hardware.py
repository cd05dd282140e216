"""A perceptron in whole numbers only, as a circuit computes it: accumulate, shift, round, clip, rectify.

    accumulator = x W^T                   exact, at the sum of both points
    y = clip(round(accumulator >> (point of x + point of W - point of y)))

Products of words and their sums are exact in double precision up to 53 bits, so that casting floats at the same
places gives the same numbers to the bit: what trains is what runs.
"""

from dataclasses import dataclass

import numpy as np

from orrery.numerics.fixed_point.cast import Floats, Ints, codes_of, shifted, word
from orrery.numerics.fixed_point.powers import shift_add
from orrery.numerics.rounding import Rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """The words of every layer, (out, in), and binary points: the input's, then each layer's weights' and output's."""

    width_bits: int
    points: tuple[int, ...]
    weights: tuple[Ints, ...]
    num_powers: int = 0  # signed powers of two that make up a weight; 0 = there are multipliers
    rounding: Rounding = Rounding.NEAREST_EVEN

    def codes(self, x: Ints) -> Ints:
        """The words of the output from those of the input, (points, features)."""
        for i, layer in enumerate(self.weights):
            point_in, point_weights, point_out = self.points[2 * i : 2 * i + 3]
            accumulator = shift_add(x, layer, self.num_powers) if self.num_powers else x @ layer.T
            moved = shifted(accumulator, point_in + point_weights - point_out, self.rounding)
            to = word(self.width_bits, point_out)
            x = np.clip(moved, to.lowest_code, to.highest_code)
            if i + 1 < len(self.weights):
                x = np.maximum(x, 0)
        return x

    def output(self, x: Floats) -> Floats:
        """The same from and to real numbers."""
        words = codes_of(x, word(self.width_bits, self.points[0]), self.rounding)
        return np.ldexp(self.codes(words).astype(np.float64), -self.points[-1])
