"""``orrery formats compare``: what formats gain in speed and memory on a device, and lose in signal."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import OrreryError, ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.hardware.device import Device
from orrery.hardware.lut_count import Circuit
from orrery.numerics.crest import CrestRow, sqnr_by_crest
from orrery.numerics.draws import DISTRIBUTIONS
from orrery.numerics.format import Format
from orrery.numerics.parse import parse_format
from orrery.numerics.registry import get_format
from orrery.numerics.rotations.hadamard import has_matrix
from orrery.scenario.answer import to_json
from orrery.scenario.ask import Answer, estimate
from orrery.scenario.fields_quantize import COMPARE_BY_NAME
from orrery.scenario.format_circuits import COSTS, check_cost, circuit_of, describe
from orrery.scenario.format_signal import signal_of
from orrery.scenario.format_speed import BASE, DECODE_TOKENS, PREFILL_TOKENS, WIDTH, Speed, registered, speed_of
from orrery.scenario.inputs import Inputs, read_asked
from orrery.scenario.kinds import Count, Switch, Word
from orrery.scenario.resolve import DEFAULT_ENGINE, words
from orrery.scenario.signal import Pooled, on_front

CRESTS = (1.5, 2.0, 3.0, 4.0, 5.0)
"""Crest factors of blocks; of small blocks, those at which some of the signal is not in the largest element."""

MODEL_TRAFFIC: dict[str, Any] = {"input_tokens": 1024, "output_tokens": 256, "concurrency": 16}
"""Default traffic of a served model."""


class CompareQuestion(Inputs, table=COMPARE_BY_NAME):
    """Inputs of a comparison of formats."""

    formats: tuple[str, ...] = ()
    device: Word = None
    on: Word = None
    rotate: Switch = None
    rotate_block: Count = None
    cost: Word = None
    sum_terms: Count = None
    model: Word = None
    engine: Word = None
    seed: Count = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A model in that format on the device."""

    ttft_s: float
    tpot_s: float
    output_tokens_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One format: what it keeps of each distribution, and what it gains where a device is known."""

    format: str
    bits_per_element: float
    errors: dict[str, Pooled]  # by distribution or file; empty where nothing rounds to it
    speed: Speed | None
    served: Served | None
    circuit: Circuit | None
    fronts: tuple[
        str, ...
    ]  # "memory", "prefill", "decode", "lut", "dsp": no other gains more there and keeps more signal

    @property
    def sqnr_db(self) -> float | None:
        """On the first distribution."""
        return next(iter(self.errors.values())).sqnr_db if self.errors else None

    def to_json(self) -> dict[str, Any]:
        """One object; errors on the first distribution stand at the top."""
        first = asdict(next(iter(self.errors.values()))) if self.errors else {"sqnr_db": None}
        return {
            "format": self.format,
            "bits_per_element": self.bits_per_element,
            **first,
            "on": self.errors,
            "speed": self.speed,
            "served": self.served,
            "circuit": self.circuit,
            "fronts": self.fronts,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All formats as they were asked for; ``base`` is the 16-bit format that gains are told against."""

    results: tuple[Compared, ...]
    base: Compared | None
    device: str
    crest_block_elements: int
    by_crest: tuple[CrestRow, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units, ``null`` for an SQNR without any noise."""
        return to_json(
            {
                "results": [r.to_json() for r in self.results],
                "base": self.base.to_json() if self.base else None,
                "device": self.device,
                "by_crest": self.by_crest,
                "notes": self.notes,
            }
        )


def _block(inputs: CompareQuestion) -> int:
    """Elements that turn together; 0: as many as divide a row."""
    block = inputs.rotate_block or 0
    if block and not inputs.rotate:
        raise ScenarioError("rotate_block: has no effect without rotate; write rotate = true beside it.")
    if block and not has_matrix(block):
        raise ScenarioError(f"rotate_block: got {block}; no Hadamard matrix of that size is known, write 32.")
    return block


@typed
def compare_formats(*formats: str, **settings: Any) -> Comparison:
    """Formats side by side: bits, signal kept, and on a ``device`` speed, memory and the work of casting.

    Settings are those of the command: ``device``, ``on``, ``rotate``, ``cost``, ``model``, ``seed``.

    >>> [round(r.bits_per_element, 2) for r in compare_formats("nvfp4", "mxfp8").results]
    [4.5, 8.25]
    """
    inputs = read_asked(CompareQuestion, settings | ({"formats": formats} if formats else {}), COMPARE_BY_NAME)
    check_cost(inputs.cost, inputs.sum_terms)
    chosen = list({f.name: f for f in map(parse_format, inputs.formats)}.values())
    if not chosen:
        raise ScenarioError("formats: are missing; write some, such as nvfp4 mxfp4 int4/128:fp16.")
    if inputs.model and not inputs.device:
        raise ScenarioError('model: needs a device to run on; write one too, such as device = "b200".')
    if inputs.model:
        get_model(inputs.model)
    notes: list[str] = []
    device = get_device(inputs.device) if inputs.device else None
    if device:
        notes += [*device.notes, _said_products(inputs.engine or DEFAULT_ENGINE)]
    if inputs.cost:
        notes.append(describe(inputs.cost, inputs.sum_terms))
    if not inputs.on:
        others = ", ".join(name for name in DISTRIBUTIONS if name != "normal")
        notes.append(f"on: normal (default; there are also {others}, and files)")
    base = get_format(BASE)
    measured = signal_of(
        [*chosen, base] if device and base not in chosen else chosen,
        words(inputs.on or "normal"),
        rotates=bool(inputs.rotate),
        rotated_elements=_block(inputs),
        seed=inputs.seed or 0,
        notes=notes,
    )
    yardstick = _compared(base, measured[BASE], device, None, inputs, notes) if device else None
    rows = [_compared(f, measured[f.name], device, yardstick, inputs, notes) for f in chosen]
    block, by_crest = _by_crest(chosen, inputs.seed or 0)
    return Comparison(
        results=tuple(_with_fronts(rows)),
        base=yardstick,
        device=device.name if device else "",
        by_crest=by_crest,
        crest_block_elements=block,
        notes=tuple(dict.fromkeys(notes)),
    )


def _said_products(engine: str) -> str:
    return (
        f"speed: kernels of {engine}; {WIDTH} x {WIDTH} weights against {PREFILL_TOKENS} rows (prefill) and "
        f"{DECODE_TOKENS} (decode), with the cast as a kernel of its own: engines that fuse it into the norm before "
        "come closer to the product alone"
    )


def _by_crest(formats: Sequence[Format], seed: int) -> tuple[int, tuple[CrestRow, ...]]:
    """Every blocked format with one block size, the smallest of theirs: integers against floats, block by block."""
    blocked = [f for f in formats if f.block_elements > 1 and f.element and f.scaling.levels[0].share[0] == 1]
    if len(blocked) < 2:
        return 0, ()
    block = min(f.block_elements for f in blocked)
    crests = [c for c in CRESTS if c * c < 0.9 * block]
    return block, sqnr_by_crest([f.name for f in blocked], crests, block, seed)


def _compared(
    format: Format,
    errors: dict[str, Pooled],
    device: Device | None,
    base: Compared | None,
    inputs: CompareQuestion,
    notes: list[str],
) -> Compared:
    known = registered(format) if device else None
    speed = served = None
    if device and known is None:
        notes.append(f"{format.name}: no kernel in this format is known, so only its bits and its signal are told")
    if device and known:
        engine = get_engine(inputs.engine or DEFAULT_ENGINE, "", device).kernels
        speed = speed_of(known.name, device, engine, base.speed if base else None)
        _say_what_runs(format, known, speed, device, notes)
        served = _served(known.name, inputs, notes) if inputs.model else None
    return Compared(
        format=format.name,
        bits_per_element=format.bits_per_element,
        errors=errors,
        speed=speed,
        served=served,
        circuit=circuit_of(format, inputs.cost, inputs.sum_terms, notes) if inputs.cost else None,
        fronts=(),
    )


def _say_what_runs(format: Format, known: Format, speed: Speed, device: Device, notes: list[str]) -> None:
    if known.name != format.name:
        notes.append(f"{format.name}: the same numbers as {known.name}, and timed as that")
    if speed.runs_as == known.name:
        return
    runs = get_format(speed.runs_as)
    notes.append(f"{format.name}: {device.name} does not multiply it; timed as {runs.name}, with 16-bit arithmetic")
    if abs(runs.bits_per_element / format.bits_per_element - 1.0) > 0.1:
        notes.append(
            f"{format.name}: {runs.name} reads {runs.bits_per_element:.3g} bits an element, not "
            f"{format.bits_per_element:.3g}: its decode time is off by up to their ratio"
        )


def _served(format: str, inputs: CompareQuestion, notes: list[str]) -> Served | None:
    """A model on one device, or as few as hold it."""
    try:
        answer = estimate(
            model=inputs.model, device=inputs.device, engine=inputs.engine, weights=format, **MODEL_TRAFFIC
        )
    except OrreryError as error:
        notes.append(f"{format}: no prediction of {inputs.model}: {error}")
        return None
    if not isinstance(answer, Answer):
        notes.append(f"{format}: {inputs.model} cannot run: {answer.infeasible}")
        return None
    e = answer.estimate
    text = ", ".join(f"{key} = {value}" for key, value in MODEL_TRAFFIC.items())
    notes.append(f"model: {inputs.model} serves {text}")
    return Served(ttft_s=e.ttft_s, tpot_s=e.tpot_s, output_tokens_per_s=e.output_tokens_per_s)


def _with_fronts(rows: Sequence[Compared]) -> list[Compared]:
    """Each with the fronts that it is on; a format without signal or speed is on none."""
    gains = {"memory": [1.0 / r.bits_per_element for r in rows]}
    if any(r.speed for r in rows):
        gains["prefill"] = [r.speed.prefill.speedup_ratio if r.speed else 0.0 for r in rows]
        gains["decode"] = [r.speed.decode.speedup_ratio if r.speed else 0.0 for r in rows]
    if any(r.circuit for r in rows):
        gains |= {unit: [_saved(r.circuit, unit) for r in rows] for unit in COSTS}
    signal = [float("-inf") if r.sqnr_db is None else r.sqnr_db for r in rows]
    fronts: list[tuple[str, ...]] = [() for _ in rows]
    for name, each in gains.items():
        best = on_front([-gain for gain in each], signal)
        for i, (is_best, gain) in enumerate(zip(best, each, strict=True)):
            if is_best and gain > 0.0 and signal[i] > float("-inf"):
                fronts[i] = (*fronts[i], name)
    return [replace(row, fronts=front) for row, front in zip(rows, fronts, strict=True)]


def _saved(circuit: Circuit | None, unit: str) -> float:
    """Circuits in one table or block; 0 where it takes none, or none is counted."""
    taken = 0.0 if circuit is None else circuit.luts if unit == "lut" else circuit.dsps
    return 1.0 / taken if taken else 0.0
