"""From a question to rows: every device, point of the sweep, format, maker and variant."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from orrery.base.errors import OutOfRange, ScenarioError, UnknownName, nearest
from orrery.catalog.devices import get_device
from orrery.hardware.device import Device
from orrery.scenario.fields_kernel import ALIASES, KERNEL_BY_NAME, SIZES
from orrery.scenario.inputs import read_asked
from orrery.scenario.kernel.answer import Declined, KernelAnswer, KernelRow
from orrery.scenario.kernel.assumed import assumed_roof
from orrery.scenario.kernel.operator import NOT_MEASURED, Found, Operator, Size, Way, Work, listed
from orrery.scenario.kernel.operators import OPERATORS
from orrery.scenario.kernel.question import KernelQuestion
from orrery.scenario.kernel.sweep import points, read_sweeps
from orrery.scenario.kernel.unused import unused_notes

ALWAYS = frozenset({"op", "device", "variant", "sweep", "measure"})
"""Settings that every operator reads."""

SIZE_NAMES = frozenset(s.name for s in SIZES)


def read_kernel(settings: Mapping[str, Any]) -> KernelQuestion:
    """The question that these settings ask, under the names that the settings have here."""
    plain: dict[str, Any] = {}
    for key, value in settings.items():
        name = ALIASES.get(key.replace("-", "_"), key)
        if name in plain:
            raise ScenarioError(f"{key}: is another name of {name}, which is given too; keep one.")
        plain[name] = value
    return read_asked(KernelQuestion, plain, KERNEL_BY_NAME)


def get_operator(name: str | None) -> Operator:
    """An operator by name; UnknownName with the nearest."""
    if name is None:
        raise ScenarioError(f"op: not set; write one of {', '.join(OPERATORS)}.")
    plain = name.strip().casefold().replace("_", "-").replace(" ", "-")
    plain = SPELLINGS.get(plain, plain)
    if plain not in OPERATORS:
        raise UnknownName("operator", name, OPERATORS, "orrery kernel --help")
    return OPERATORS[plain]


SPELLINGS = {
    "matmul": "gemm",
    "quantise": "quantize",
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "alltoall": "all-to-all",
    "mla": "latent-attention",
    "lstm": "rnn",
    "layernorm": "norm",
    "rmsnorm": "norm",
    "layer-norm": "norm",
    "rms-norm": "norm",
    "mlp": "fused-mlp",
    "grouped": "grouped-gemm",
    "experts": "moe",
    "convolution": "conv",
    "argsort": "sort",
    "silu": "gated-activation",
    "attention-prefill": "attention",
    "attention-decode": "attention",
    "mla-prefill": "latent-attention",
    "mla-decode": "latent-attention",
}
"""Other names that operators are taken by."""


def predict_kernel(question: KernelQuestion) -> tuple[KernelAnswer, list[tuple[KernelRow, Found]]]:
    """The answer, and beside it what every row was found from (for those who measure it too)."""
    answer, found = _predicted(question)
    unused = unused_notes(question, answer.rows, lambda less: _predicted(less)[0].rows)
    return replace(answer, notes=(*answer.notes, *unused)), found


def _predicted(question: KernelQuestion) -> tuple[KernelAnswer, list[tuple[KernelRow, Found]]]:
    operator = get_operator(question.op)
    text = {key: value for key, value in question.written().items() if key not in ("op", "sweep", "measure")}
    _check_settings(operator, text)
    swept = read_sweeps(question.sweep, tuple(operator.sizes))
    if both := [key for key in swept if key in text]:
        raise ScenarioError(f"{both[0]}: is given and swept; keep one.")
    if question.device is None:
        raise ScenarioError("device: not set; write a name such as h100-sxm (orrery show devices lists them).")
    devices = [get_device(name) for name in listed(question.device)]
    notes = [note for device in devices for note in device.notes]
    found: list[tuple[KernelRow, Found]] = []
    declined: dict[tuple[str, ...], Declined] = {}
    for device in devices:
        for varied in points(swept):
            work = _work(operator, device, text, varied)
            operator.check(work)
            notes += operator.notes(work)
            for way in _chosen(operator, work, question.variant):
                try:
                    answer = way.find()
                except OutOfRange as error:
                    key = (device.name, way.variant, way.format, way.engine, str(error))
                    declined[key] = Declined(
                        device=device.name, variant=way.variant, format=way.format, engine=way.engine, reason=str(error)
                    )
                    continue
                row = _row(operator, work, way, answer, varied)
                notes += assumed_roof(row, device)
                found.append((row, answer))
    if not found:
        reasons = dict.fromkeys(f"{d.variant or d.format}: {d.reason}" for d in declined.values())
        raise OutOfRange(f"{operator.name}: nothing can be said. " + "\n".join(reasons))
    if any(row.interval is None for row, _ in found):
        notes.append(
            "rows without an interval: nothing was measured of that variant; their number is the mechanism's on the "
            "device's stated rates"
        )
    return KernelAnswer(
        op=operator.name,
        rows=tuple(row for row, _ in found),
        declined=tuple(declined.values()),
        swept=swept,
        notes=tuple(dict.fromkeys(notes)),
    ), found


def _check_settings(operator: Operator, text: Mapping[str, Any]) -> None:
    """A setting that the operator does not read is refused: it would have no effect."""
    takes = ALWAYS | operator.settings | operator.sizes.keys()
    if unread := sorted(text.keys() - takes):
        reads = ", ".join((*operator.sizes, *sorted(operator.settings)))
        raise ScenarioError(f"{', '.join(unread)}: {operator.name} does not ask for it. It reads: {reads}.")


def _work(operator: Operator, device: Device, text: Mapping[str, Any], varied: Mapping[str, Size]) -> Work:
    given = {key: value for key, value in {**text, **varied}.items() if key in SIZE_NAMES}
    missing = [name for name, default in operator.sizes.items() if default is None and name not in given]
    if missing:
        example = " ".join(f"--{n.replace('_', '-')} {KERNEL_BY_NAME[n].example}" for n in missing)
        raise ScenarioError(f"{operator.name}: {', '.join(missing)} must be said; write, for example, {example}.")
    sizes = {name: given.get(name, default) for name, default in operator.sizes.items()}
    words = {key: value for key, value in text.items() if key not in SIZE_NAMES and value is not None}
    return Work(device=device, sizes={k: v for k, v in sizes.items() if v is not None}, words=words)


def _chosen(operator: Operator, work: Work, variant: str | None) -> Iterator[Way]:
    """The ways that were asked for; all where nothing was said."""
    if variant is None:
        yield from operator.ways(work)
        return
    requested = [operator.spellings.get(name, name) for name in listed(variant)]
    known = tuple(operator.variants)
    for name in requested:
        if name not in known:
            near = nearest(name, known, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ScenarioError(f"variant: {operator.name} has no {name!r}.{hint} It has: {', '.join(known)}.")
    ways = list(operator.ways(work))
    for name in requested:
        mine = [way for way in ways if way.variant == name]
        if not mine:
            raise ScenarioError(
                f"variant: {name} does not go with the other settings; it is: {operator.variants[name]}"
            )
        yield from mine


def _row(operator: Operator, work: Work, way: Way, found: Found, varied: Mapping[str, Size]) -> KernelRow:
    interval = found.spread.around(found.time_s) if found.spread else None
    because = list(found.because)
    if found.spread is None:
        because.append(NOT_MEASURED)
    elif found.spread.because:
        because.append(found.spread.because)
    return KernelRow(
        device=work.device.name,
        op=operator.name,
        variant=way.variant,
        format=way.format,
        engine=found.engine or way.engine,
        sizes=work.sizes,
        varied=dict(varied),
        time_s=found.time_s,
        interval=interval,
        flops=found.flops,
        bytes=found.bytes,
        roofs_s=found.roofs_s,
        bound_by=found.bound_by,
        details=found.details,
        because="; ".join(because),
    )
