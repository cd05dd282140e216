"""Recipes of `orrery quantize`: how far a layer's output moves when its matrix is prepared before it is rounded."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OrreryError, ScenarioError
from orrery.engine.streams import stream
from orrery.numerics.draws import draw
from orrery.numerics.format import Format
from orrery.numerics.recipes.format_grid import grid
from orrery.numerics.recipes.layer import Layer, Scheme
from orrery.numerics.recipes.prepare import RECIPES, Measured, measure, prepare
from orrery.numerics.recipes.prepared import Prepared
from orrery.numerics.rounding import Rounding
from orrery.scenario.resolve import words
from orrery.scenario.tensor_file import tensors_in

PLAIN = ("round-to-nearest",)
"""The recipe with which all others are compared."""

MAX_OUTPUTS, MAX_FEATURES = 512, 4096
"""Limits of a layer that recipes are tried on: rows of weights, spread over it, and columns."""

JUDGED_TOKENS, TOKENS_PER_FEATURE = 256, 2
"""Rows of activations that judge, and those that calibrate for each feature: fewer teach a recipe noise."""

DRAWN = "activations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One layer in one format after one recipe, on activations that the recipe has not seen."""

    source: str
    tensor: str
    format: str
    activations: str  # their format; blank: as they are
    recipe: str
    bits_per_element: float
    output_sqnr_db: float
    output_error_frac: float
    weights_error_frac: float
    extra_bytes: float
    extra_flops_per_token: float
    output_sqnr_low_db: float  # the least of all seeds, and the most; one seed is both
    output_sqnr_high_db: float
    num_seeds: int = 1


def read_recipes(text: str | None) -> tuple[tuple[str, ...], ...]:
    """``gptq,hadamard+gptq`` as two recipes of one and two techniques; every name is known."""
    found = [tuple(name.strip() for name in word.split("+")) for word in words(text or "")]
    for name in {name for recipe in found for name in recipe}:
        RECIPES.get(name)
    return tuple(dict.fromkeys((PLAIN, *found))) if found else ()


class Layers:
    """Recipes and the activations that they are judged on."""

    def __init__(
        self,
        *,
        recipes: Sequence[tuple[str, ...]],
        activations: str | None,
        activation_formats: Sequence[Format],
        rounding: Rounding,
        seed: int,
    ) -> None:
        for name, value in (("activations", activations), ("activation_formats", activation_formats)):
            if value and not recipes:
                raise ScenarioError(f'{name}: serve recipes alone; write some too, such as recipes = "gptq".')
        self._recipes, self._rounding, self._seed = recipes, rounding, seed
        self._activation_formats = tuple(activation_formats)
        self._file = tensors_in(Path(activations)) if activations else ()
        self.notes: list[str] = []

    def measure(self, source: str, tensor: str, weights: NDArray[Any], format: Format) -> list[Measurement]:
        """Every recipe on one matrix; what is no matrix has no layer. ScenarioError where a recipe cannot be."""
        if not self._recipes or weights.ndim != 2:
            if self._recipes:
                self._say(f"recipes: {tensor} is no matrix (out, in), and was left out")
            return []
        if weights.shape[1] > MAX_FEATURES:
            raise ScenarioError(f"recipes take at most {MAX_FEATURES:,} columns; it has {weights.shape[1]:,}")
        layer = self._layer(tensor, weights)
        on = grid(format, rounding=self._rounding, seed=self._seed)
        seen = self._activation_formats or (() if format.weight_only else (format,))
        if self._activation_formats:
            self._say("recipes: each is made on exact activations, and judged on those of every activation format")
        else:
            self._say("recipes: activations are rounded like the weights, except for weight-only formats")
        scheme = Scheme(weights=on, activations=on if seen == (format,) and not self._activation_formats else None)
        found: list[Measurement] = []
        for recipe in self._recipes:
            name = "+".join(recipe)
            rng = stream(self._seed, f"recipe/{tensor}/{format.name}/{name}")
            try:
                prepared = prepare(layer, scheme, recipe, rng)
                ways = self._ways(prepared, seen)
                found += [_measurement(source, tensor, format, x, name, measure(p, layer)) for x, p in ways]
            except OrreryError as error:
                self._say(f"recipes: {name} was left out of {tensor} in {format.name}: {error}")
        return found

    def _ways(self, prepared: Prepared, seen: Sequence[Format]) -> list[tuple[str, Prepared]]:
        """The prepared layer by the format of its activations."""
        if not self._activation_formats:
            return [(seen[0].name if seen else "", prepared)]
        grids = [(f.name, grid(f, rounding=self._rounding, seed=self._seed)) for f in seen]
        return [(name, prepared.with_activations(on)) for name, on in grids]

    def _layer(self, tensor: str, weights: NDArray[Any]) -> Layer:
        """Rows spread over the matrix, and the two halves of the activations."""
        step = -(-len(weights) // MAX_OUTPUTS)
        if step > 1:
            self._say(f"recipes: judged on {len(weights[::step])} of {tensor}'s {len(weights):,} outputs")
        rows = np.array(weights[::step], dtype=np.float32)
        width = weights.shape[1]
        x = self._activations(tensor, width)
        judged = min(JUDGED_TOKENS, len(x) // 2)
        if not judged:
            self._say("recipes: one row of activations is both calibration and judge")
            return Layer(weights=rows, inputs=x)
        if len(x) - judged < width:
            self._say(f"recipes: {len(x) - judged} rows calibrate {width} features: too few to trust what they teach")
        return Layer(weights=rows, inputs=x[judged:], held_out=x[:judged])

    def _activations(self, tensor: str, width: int) -> NDArray[np.float32]:
        """Rows in an order of their own, so that those that judge are like the others."""
        most = JUDGED_TOKENS + TOKENS_PER_FEATURE * width
        if not self._file:
            self._say(
                f"recipes: activations are drawn ({DRAWN}, seed {self._seed}); give --activations for real ones. "
                "Drawn features share some factors, as a network's do; how much yours share decides what gptq gains"
            )
            return draw(DRAWN, (most, width), self._seed)
        fitting = [x for x in self._file if x.shape and x.shape[-1] == width and prod(x.shape)]
        if not fitting:
            raise ScenarioError(f"activations: no tensor there has {width} features in its last axis")
        chosen = next((x for x in fitting if x.name == tensor), fitting[0])
        numbers = chosen.read().reshape(-1, width)
        order = stream(self._seed, "recipe/activations").permutation(len(numbers))[:most]
        return np.array(numbers[order], dtype=np.float32)

    def _say(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def _measurement(
    source: str, tensor: str, format: Format, activations: str, recipe: str, measured: Measured
) -> Measurement:
    return Measurement(
        source=source,
        tensor=tensor,
        format=format.name,
        activations=activations,
        recipe=recipe,
        bits_per_element=format.bits_per_element,
        output_sqnr_db=measured.output_sqnr_db,
        output_sqnr_low_db=measured.output_sqnr_db,
        output_sqnr_high_db=measured.output_sqnr_db,
        output_error_frac=measured.output_error_frac,
        weights_error_frac=measured.weights_error_frac,
        extra_bytes=measured.extra_bytes,
        extra_flops_per_token=measured.extra_flops_per_token,
    )
