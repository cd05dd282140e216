"""Small networks that are really trained in place of a space's own: a twin of its branches, or layers in formats.

A twin has a residual branch for every choice, as wide as the alternative's share of its choice's capacity; an
alternative without capacity passes its input on. Layers in formats are a perceptron whose every layer takes a format.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from orrery.numerics.experiments.fitting import all_alike
from orrery.numerics.experiments.networks import Network, Perceptron
from orrery.numerics.experiments.steps import Pass, RuleOf, Step, chain, residual, rms_norm, silu
from orrery.numerics.experiments.tasks import Task, classification, regression
from orrery.numerics.learning import linear

Path = NDArray[np.int64]
"""One network: the alternative of every choice."""

WIDTH, MAX_HIDDEN, INPUTS, CLASSES = 24, 32, 32, 16
"""Sizes of a twin: its residual stream, its widest branch, its inputs and its outputs."""

MAX_CHOICES = 32
"""Branches that are trained in a second; spaces of more choices are not."""


class Toy(Protocol):
    """The trained toy: a network for every path, its multiplications, and the task."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """The weights of all paths."""
        ...

    def network(self, path: Path) -> Network:
        """The network of one path."""
        ...

    def rule_of(self, path: Path) -> RuleOf:
        """The way in which the layers of a path multiply."""
        ...

    def task(self, seed: int) -> Task:
        """The task to learn."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Twin:
    """Branches as wide as ``hidden`` says, by choice and alternative; 0 passes on."""

    hidden: NDArray[np.int64]

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Both matrices of every branch, and the way in and out."""
        return self._shapes([(c, a) for c in range(len(self.hidden)) for a in range(self.hidden.shape[1])])

    def network(self, path: Path) -> Network:
        """The branches of one path."""
        return _Branches(twin=self, path=path)

    def rule_of(self, path: Path) -> RuleOf:
        """Exact products."""
        return all_alike(linear("exact-linear"))

    def task(self, seed: int) -> Task:
        """Overlapping clusters in classes."""
        return classification(seed, num_inputs=INPUTS, num_classes=CLASSES)

    def branch(self, run: Pass, choice: int, alternative: int) -> Step:
        """Contribution of one alternative to the stream."""
        if not self.hidden[choice, alternative]:
            return lambda x: (np.zeros_like(x), np.zeros_like)
        name = f"{choice}.{alternative}"
        return chain(rms_norm, run.linear(f"{name}.up"), silu, run.linear(f"{name}.down"))

    def of_path(self, path: Path) -> Mapping[str, tuple[int, int]]:
        """The weights of one path."""
        return self._shapes([(c, int(a)) for c, a in enumerate(path)])

    def _shapes(self, places: list[tuple[int, int]]) -> Mapping[str, tuple[int, int]]:
        found = {"in": (WIDTH, INPUTS)}
        for c, a in places:
            if width := int(self.hidden[c, a]):
                found |= {f"{c}.{a}.up": (width, WIDTH), f"{c}.{a}.down": (WIDTH, width)}
        return found | {"out": (CLASSES, WIDTH)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Branches:
    """One path of a twin."""

    twin: Twin
    path: Path

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Shapes of the weights that the path uses."""
        return self.twin.of_path(self.path)

    def step(self, run: Pass) -> Step:
        """In, branches beside the stream, out."""
        branches = [residual(self.twin.branch(run, c, int(a))) for c, a in enumerate(self.path)]
        return chain(run.linear("in"), *branches, rms_norm, run.linear("out"))


def twin_of(capacity_frac: NDArray[np.float64]) -> Twin:
    """A twin whose branches are as wide as alternatives are beside the most that their choice offers."""
    wide = np.rint(MAX_HIDDEN * np.nan_to_num(capacity_frac))
    return Twin(hidden=np.where(capacity_frac > 0.0, np.maximum(wide, 1.0), 0.0).astype(np.int64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FormatLayers:
    """A perceptron each of whose layers casts weights and inputs to a format, with straight-through gradients."""

    formats: tuple[str, ...]
    widths: tuple[int, ...] = (64, 128, 128, 128, 16)

    @property
    def perceptron(self) -> Perceptron:
        """The network, whatever its formats."""
        return Perceptron(widths=self.widths)

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """The layers' weights, which all formats share."""
        return self.perceptron.shapes

    def network(self, path: Path) -> Network:
        """The same for every path."""
        return self.perceptron

    def rule_of(self, path: Path) -> RuleOf:
        """Each layer in its format."""
        rules = {f: linear("rounded-linear", inputs=f, weights=f, gradients="") for f in self.formats}
        by_layer = {name: rules[self.formats[int(i)]] for name, i in zip(self.shapes, path, strict=True)}
        return lambda name: by_layer[name]

    def task(self, seed: int) -> Task:
        """A random teacher of features that differ widely in size."""
        return regression(seed, num_inputs=self.widths[0], num_outputs=self.widths[-1])
