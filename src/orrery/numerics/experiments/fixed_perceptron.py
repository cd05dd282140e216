"""A perceptron whose weights, inputs and outputs are fixed point, with binary points that learn along with the weights.

Its points are one more row of weights, real numbers that are rounded to whole bits where they are used, each with the
straight-through gradient of its cast; ``fit`` trains them with the rest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orrery.numerics.experiments.networks import Perceptron
from orrery.numerics.experiments.steps import Back, Pass, Step, chain, relu
from orrery.numerics.fixed_point.cast import Floats, Ints, codes_of, with_gradients, word
from orrery.numerics.fixed_point.hardware import Circuit
from orrery.numerics.fixed_point.powers import few_powers
from orrery.numerics.learning.linear import Array

POINTS = "points"
"""The row of weights that says where the binary points are."""

BITS_PER_UNIT = 32.0
"""Bits that a point moves for one unit of its weight: a point must be able to move a bit while weights move little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPerceptron:
    """Layers of those widths with ReLU between them; every tensor is made of words of ``width_bits``.

    Points in order: the input's, then for every layer its weights' and its output's. Without ``width_bits``, nothing is
    rounded.
    """

    widths: tuple[int, ...]
    width_bits: int = 0
    learns_points: bool = True
    num_powers: int = 0  # signed powers of two that make up a weight; 0 = any weight of the word

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """The layers' weights, and the points."""
        layers = Perceptron(widths=self.widths).shapes
        return {**layers, POINTS: (1, 2 * len(layers) + 1)}

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers' weights."""
        return tuple(name for name in self.shapes if name != POINTS)

    def step(self, run: Pass) -> Step:
        """Cast the input; then layer by layer multiply, cast, rectify."""
        run.gradients[POINTS] = np.zeros(self.shapes[POINTS], dtype=np.float32)
        steps = [self._cast(run, 0)]
        for i, name in enumerate(self.layers):
            steps += [self._product(run, name, 2 * i + 1), self._cast(run, 2 * i + 2), relu]
        return chain(*steps[:-1])

    def points(self, weights: Mapping[str, Array]) -> tuple[int, ...]:
        """Fraction bits as they are used."""
        return tuple(int(p) for p in np.rint(BITS_PER_UNIT * weights[POINTS][0].astype(np.float64)))

    def circuit(self, weights: Mapping[str, Array]) -> Circuit:
        """The hardware that computes the same, to the bit."""
        points = self.points(weights)
        codes = [self._codes(weights[name], points[2 * i + 1]) for i, name in enumerate(self.layers)]
        return Circuit(width_bits=self.width_bits, points=points, weights=tuple(codes), num_powers=self.num_powers)

    def _codes(self, weights: Array, point: int) -> Ints:
        """A layer's weights as words."""
        codes = codes_of(weights, word(self.width_bits, point))
        return few_powers(codes, self.num_powers) if self.num_powers else codes

    def _cast(self, run: Pass, at: int) -> Step:
        """Words of the activations, and the gradient of their point."""

        def step(x: Array) -> tuple[Array, Back]:
            if not self.width_bits:
                return x, lambda d_out: d_out
            out, back = with_gradients(x.astype(np.float64), word(self.width_bits, self.points(run.weights)[at]))

            def back_to_x(d_out: Array) -> Array:
                d_x, d_point = back(d_out.astype(np.float64))
                self._note(run, at, d_point)
                return d_x

            return out, back_to_x

        return step

    def _product(self, run: Pass, name: str, at: int) -> Step:
        """A product with words of the weights, exact as in a wide accumulator."""

        def step(x: Array) -> tuple[Array, Back]:
            stored, back = self._stored(run, name, at)

            def back_to_x(dy: Array) -> Array:
                run.gradients[name], d_point = back((dy.T @ x).astype(np.float64))
                self._note(run, at, d_point)
                return dy @ stored

            return x @ stored.T, back_to_x

        return step

    def _stored(self, run: Pass, name: str, at: int) -> tuple[Floats, Callable[[Floats], tuple[Floats, float]]]:
        """The weights as they are multiplied, and from the gradient by them those of weights and point."""
        w = run.weights[name].astype(np.float64)
        if not self.width_bits:
            return w, lambda d_out: (d_out, 0.0)
        point = self.points(run.weights)[at]
        stored, back = with_gradients(w, word(self.width_bits, point))
        if self.num_powers:
            stored = np.ldexp(self._codes(w, point).astype(np.float64), -point)
        return stored, back

    def _note(self, run: Pass, at: int, d_point: float) -> None:
        """The gradient of one point, in its weight's unit."""
        if self.learns_points:
            run.gradients[POINTS][0, at] = BITS_PER_UNIT * d_point


def with_points(weights: Mapping[str, Array], points: Sequence[int]) -> dict[str, Array]:
    """The weights of layers together with their binary points."""
    return {**weights, POINTS: np.array([points], dtype=np.float32) / np.float32(BITS_PER_UNIT)}
