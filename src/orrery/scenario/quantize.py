"""``orrery quantize``: what storing tensors in few bits costs in signal."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from math import ceil, prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.arguments import typed
from orrery.base.errors import OrreryError, ScenarioError, UnknownName
from orrery.engine.streams import stream
from orrery.numerics.draws import ROWS
from orrery.numerics.error import ErrorReport, error_of
from orrery.numerics.format import Format
from orrery.numerics.parse import parse_format
from orrery.numerics.quantise import codec_of
from orrery.numerics.rounding import Rounding
from orrery.scenario.fields_quantize import QUANTIZE_BY_NAME
from orrery.scenario.format_circuits import check_cost
from orrery.scenario.inputs import Inputs, read_asked
from orrery.scenario.kinds import Count, Number, Word
from orrery.scenario.quantize_answer import Declined, QuantizeAnswer, Result, Total
from orrery.scenario.quantize_layers import Layers, Measurement, read_recipes
from orrery.scenario.quantize_pairs import Pair, pairs_of
from orrery.scenario.quantize_seeds import over_seeds
from orrery.scenario.resolve import words
from orrery.scenario.rotation_fit import rotation_fit
from orrery.scenario.signal import Survey, on_front, pool, stored_bytes, survey, tensors_of, why_not
from orrery.scenario.tensor_file import Tensor

COLUMNS = 1024

WIDE_BYTES = 2.0
"""Bytes of an element of a column that stays in 16 bits."""

BLOCK_COLUMNS = 128
"""Columns of a block of activations that is of one width (COMET, arXiv 2410.12168)."""

MAX_DRAWN = 1 << 28
"""Numbers of a drawn tensor, which is kept in memory."""

Source = str | Path | NDArray[Any]
Progress = Callable[[int, int], None]


class QuantizeQuestion(Inputs, table=QUANTIZE_BY_NAME):
    """Inputs of a measurement on tensors."""

    sources: tuple[str, ...] = ()
    formats: Word = None
    recipes: Word = None
    activations: Word = None
    activation_formats: Word = None
    cost: Word = None
    sum_terms: Count = None
    model: Word = None
    device: Word = None
    calibration_tokens: Count = None
    sequence_tokens: Count = None
    rounding: Word = None
    seed: Count = None
    seeds: Count = None
    rows: Count = None
    columns: Count = None
    wide_above: Number = None
    tensors: Word = None


@typed
def quantize(*sources: Source, on_progress: Progress = lambda done, total: None, **settings: Any) -> QuantizeAnswer:
    """Tensors rounded to number formats and back: bits, bytes and errors of each, and of all together.

    Sources are .npy, .npz and .safetensors files, names of distributions, or arrays; settings are those of the command:
    ``formats`` (with commas), ``recipes``, ``activations``, ``rounding``, ``seed``, ``seeds``, ``rows``, ``columns``,
    ``tensors``.

    >>> quantize("normal", formats="nvfp4", rows=64, columns=64).totals[0].bits_per_element
    4.5
    """
    named = settings | ({"sources": tuple(s for s in map(str, sources))} if _are_named(sources) else {})
    inputs = read_asked(QuantizeQuestion, named, QUANTIZE_BY_NAME)
    if not (sources or inputs.sources):
        raise ScenarioError("sources: are missing; write files or distributions, such as weights or model.safetensors.")
    _check_pairs(inputs)
    recipes = read_recipes(inputs.recipes)
    if inputs.seeds is not None and not recipes:
        raise ScenarioError('seeds: are those of recipes alone; write some too, such as recipes = "gptq".')
    fitting = rotation_fit(inputs.model, inputs.device, inputs.calibration_tokens, inputs.sequence_tokens, recipes)
    first, runs = inputs.seed or 0, inputs.seeds or 1
    answers = [
        _measured(
            sources if sources else inputs.sources or (),
            inputs.model_copy(update={"seed": first + i}),
            recipes,
            lambda done, total, i=i: on_progress(i * total + done, runs * total),
        )
        for i in range(runs)
    ]
    layers = over_seeds([answer.layers for answer in answers])
    notes = answers[0].notes
    if runs > 1:
        notes = (*notes, f"seeds: recipes over {runs}, from {first} on; the formats themselves with seed {first}")
    return replace(answers[0], layers=layers, fitting=fitting, pairs=_pairs(inputs, layers), notes=notes)


def _measured(
    sources: Sequence[Source], inputs: QuantizeQuestion, recipes: tuple[tuple[str, ...], ...], on_progress: Progress
) -> QuantizeAnswer:
    """Every tensor in every format, and every recipe, with one seed."""
    formats, rounding, seed = formats_in(inputs.formats), _rounding(inputs.rounding), inputs.seed or 0
    tensors = _chosen(sources, inputs)
    layers = Layers(
        recipes=recipes,
        activations=inputs.activations,
        activation_formats=formats_in(inputs.activation_formats) if inputs.activation_formats else (),
        rounding=rounding,
        seed=seed,
    )
    work = _Work(formats=formats, rounding=rounding, seed=seed, layers=layers, wide_above=inputs.wide_above)
    steps = len(tensors) * len(formats)
    for i, (source, tensor) in enumerate(tensors):
        on_progress(i * len(formats), steps)
        for done in work.do(source, tensor):
            on_progress(i * len(formats) + done, steps)
    return work.answer(_notes(inputs, tensors))


def _check_pairs(inputs: QuantizeQuestion) -> None:
    """Refuse costs of pairs where no pairs are asked for."""
    if inputs.cost is not None and inputs.activation_formats is None:
        raise ScenarioError('cost: is of pairs of formats; write activation_formats = "int4/tensor" beside it.')
    if inputs.cost not in (None, "lut"):
        raise ScenarioError(f"cost: got {inputs.cost!r}; pairs of formats are counted in lut alone.")
    check_cost(inputs.cost, inputs.sum_terms)


def _pairs(inputs: QuantizeQuestion, measured: Sequence[Measurement]) -> tuple[Pair, ...]:
    if inputs.activation_formats is None:
        return ()
    return pairs_of(measured, counts_luts=inputs.cost is not None, sum_terms=inputs.sum_terms)


def wide_columns(numbers: NDArray[Any], above: float | None) -> NDArray[np.bool_]:
    """Which columns hold a magnitude above the limit; none where there is no limit, or the tensor has one axis."""
    if above is None or numbers.ndim < 2:
        return np.zeros(0, np.bool_)
    return np.abs(numbers).max(axis=tuple(range(numbers.ndim - 1))) > above


def wide_blocks_frac(is_wide: NDArray[np.bool_]) -> float:
    """Share of the blocks of columns that hold a wide one, wide columns sorted to the front."""
    blocks = ceil(is_wide.size / BLOCK_COLUMNS)
    return ceil(int(is_wide.sum()) / BLOCK_COLUMNS) / blocks if blocks else 0.0


def _are_named(sources: Sequence[Source]) -> bool:
    return bool(sources) and all(isinstance(source, str | Path) for source in sources)


def formats_in(text: str | None) -> tuple[Format, ...]:
    """Formats as typed, with commas, each once; every one can be rounded to."""
    found = {f.name: f for f in map(parse_format, words(text or ""))}
    if not found:
        raise ScenarioError('formats: is missing; write some, such as formats = "nvfp4,mxfp4,int4/128:fp16".')
    for format in found.values():
        codec_of(format)
    return tuple(found.values())


def _rounding(word: str | None) -> Rounding:
    modes = {mode.value: mode for mode in Rounding}
    plain = (word or Rounding.NEAREST_EVEN).casefold().replace("_", "-")
    if plain not in modes:
        raise UnknownName("rounding", word or "", modes)
    return modes[plain]


def _chosen(sources: Sequence[Source], inputs: QuantizeQuestion) -> list[tuple[str, Tensor]]:
    """Every tensor of every source that is asked for."""
    shape = (inputs.rows or ROWS, inputs.columns or COLUMNS)
    if shape[0] * shape[1] > MAX_DRAWN:
        raise ScenarioError(f"rows, columns: got {shape[0]} x {shape[1]}; at most {MAX_DRAWN:,} numbers are drawn.")
    found: list[tuple[str, Tensor]] = []
    for source in sources:
        name, tensors = tensors_of(source, shape, inputs.seed or 0)
        found += [(name, tensor) for tensor in tensors]
    chosen = [pair for pair in found if fnmatchcase(pair[1].name, inputs.tensors or "*")]
    if not chosen:
        names = ", ".join(tensor.name for _, tensor in found[:3])
        raise ScenarioError(f"tensors: {inputs.tensors!r} matches none of {len(found)}; they are called like {names}.")
    return chosen


def _notes(inputs: QuantizeQuestion, tensors: Sequence[tuple[str, Tensor]]) -> list[str]:
    notes: list[str] = []
    if any(tensor.dtype == "drawn" for _, tensor in tensors):
        notes.append(
            f"drawn numbers (seed {inputs.seed or 0}) are no model's: give a file for what your own weights lose"
        )
    elif inputs.rows or inputs.columns:
        notes.append("rows, columns: not used (nothing is drawn)")
    if inputs.wide_above is not None:
        notes.append(f"wide_above: columns above {inputs.wide_above:g} stay in 16 bits; errors are those of the others")
        if inputs.recipes:
            notes.append("wide_above: recipes are tried on whole matrices")
    return notes


class _Work:
    """State of the measurement so far."""

    def __init__(
        self, *, formats: Sequence[Format], rounding: Rounding, seed: int, layers: Layers, wide_above: float | None
    ) -> None:
        self.formats, self.rounding, self.seed, self.layers = formats, rounding, seed, layers
        self.wide_above = wide_above
        self.results: list[Result] = []
        self.measured: list[Measurement] = []
        self.declined: list[Declined] = []
        self.parts: dict[str, list[tuple[Survey, ErrorReport, float]]] = {f.name: [] for f in formats}

    def do(self, source: str, tensor: Tensor) -> Iterator[int]:
        """One tensor in every format; how many are done, as they are."""

        def decline(reason: str, count: int, format: str = "") -> None:
            self.declined.append(Declined(source=source, tensor=tensor.name, format=format, count=count, reason=reason))

        try:
            numbers = tensor.read()
        except OrreryError as error:
            decline(str(error), tensor.num_elements)
            return
        seen = survey(numbers)
        reason, count = why_not(seen)
        if reason:
            decline(reason, count)
            return
        for i, format in enumerate(self.formats):
            try:
                self._round(source, tensor, numbers, seen, format)
                self.measured += self.layers.measure(source, tensor.name, numbers, format)
            except OrreryError as error:
                decline(str(error), tensor.num_elements, format.name)
            yield i + 1

    def _round(self, source: str, tensor: Tensor, numbers: NDArray[Any], seen: Survey, format: Format) -> None:
        rng = stream(self.seed, f"quantize/{tensor.name}/{format.name}")
        is_wide = wide_columns(numbers, self.wide_above)
        wide_frac = float(is_wide.mean()) if is_wide.size else 0.0
        if wide_frac == 1.0:
            raise ScenarioError(
                f"all columns of {tensor.name} are above {self.wide_above:g}; write a larger wide_above"
            )
        narrow = numbers[..., ~is_wide] if wide_frac else numbers
        if wide_frac:
            seen = survey(narrow)
        error = error_of(narrow, format, rounding=self.rounding, rng=rng)
        size = stored_bytes(narrow.shape, format) + WIDE_BYTES * (numbers.size - narrow.size)
        self.parts[format.name].append((seen, error, size))
        self.results.append(
            Result(
                source=source,
                tensor=tensor.name,
                shape=tensor.shape,
                format=format.name,
                size_bytes=size,
                bits_per_element=8.0 * size / numbers.size if wide_frac else format.bits_per_element,
                wide_frac=wide_frac,
                wide_blocks_frac=wide_blocks_frac(is_wide),
                crest_factor=seen.crest_factor,
                error=error,
            )
        )

    def _mean_bits(self, format: Format) -> float:
        """Bits of an element over all tensors, wide columns included."""
        found = [r for r in self.results if r.format == format.name]
        return 8.0 * sum(r.size_bytes for r in found) / sum(prod(r.shape) for r in found)

    def answer(self, notes: list[str]) -> QuantizeAnswer:
        """Assemble the whole answer, sorted; ScenarioError where nothing came out."""
        if not self.results:
            why = dict.fromkeys(f"{d.tensor}: {d.reason}" for d in self.declined)
            raise ScenarioError("No tensor could be quantised. " + "; ".join(list(why)[:5]).rstrip(".") + ".")
        known = [f for f in self.formats if self.parts[f.name]]
        pooled = [pool((seen, error) for seen, error, _ in self.parts[f.name]) for f in known]
        bits = [f.bits_per_element if self.wide_above is None else self._mean_bits(f) for f in known]
        best = on_front(bits, [p.sqnr_db for p in pooled])
        totals = [
            Total(
                format=f.name,
                bits_per_element=each,
                error=p,
                is_best=b,
                size_bytes=sum(size for _, _, size in self.parts[f.name]),
                num_tensors=len(self.parts[f.name]),
            )
            for f, p, b, each in zip(known, pooled, best, bits, strict=True)
        ]
        return QuantizeAnswer(
            results=tuple(self.results),
            layers=tuple(self.measured),
            declined=tuple(self.declined),
            totals=tuple(sorted(totals, key=lambda t: (t.bits_per_element, -t.error.sqnr_db))),
            notes=(*notes, *self.layers.notes),
        )
