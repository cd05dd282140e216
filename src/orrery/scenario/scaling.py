"""``orrery scaling``: laws of low-precision training answered for a model size, an amount of data and a format."""

from dataclasses import dataclass, fields, replace
from math import inf
from typing import Any

import numpy as np

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError, UnknownName, nearest
from orrery.base.units import percent
from orrery.catalog.devices import get_device
from orrery.hardware.device import Device
from orrery.numerics.laws import fp_quantisation, quartet
from orrery.numerics.laws.coefficients import facts_of
from orrery.scenario.answer import to_json
from orrery.scenario.fields_scaling import SCALING_BY_NAME
from orrery.scenario.inputs import Inputs, read_asked
from orrery.scenario.kinds import Count, Number, Switch, Word
from orrery.scenario.scaling_runs import fitted_shares

LAWS = (fp_quantisation.LAW, quartet.LAW)

PARAMETERS, TOKENS, BLOCK = 1e9, 100e9, 128
"""Default inputs."""

BUDGETS_FLOPS = tuple(10.0**power for power in range(19, 32))
MAP_PARAMETERS = tuple(float(f"{10**x:.2g}") for x in np.linspace(8.0, 12.5, 10))
MAP_TOKENS_PER_PARAMETER = tuple(float(f"{10**x:.2g}") for x in np.linspace(0.5, 4.0, 29))
FP4_RATES, FP8_RATES = ("nvfp4", "fp4"), ("fp8",)
FP4_RATIO = 2.0


class ScalingQuestion(Inputs, table=SCALING_BY_NAME):
    """Inputs of a scaling law."""

    law: Word = None
    parameters: Number = None
    tokens: Number = None
    exponent_bits: Count = None
    mantissa_bits: Count = None
    block: Count = None
    coefficients: Word = None
    compute_flops: Number = None
    device: Word = None
    fp4_ratio: Number = None
    parameters_frac: Number = None
    tokens_frac: Number = None
    runs: Word = None
    same_size: Switch = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatAnswer:
    """The law of few-bit floats for one run, and around it."""

    run: fp_quantisation.Run
    splits: tuple[fp_quantisation.Run, ...]  # the same run in the best split of every width
    budget: fp_quantisation.Run  # the best run for the asked budget
    budgets: tuple[fp_quantisation.Run, ...]  # and for others
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on."""
        return to_json(
            {
                "law": fp_quantisation.LAW,
                **_run_json(self.run),
                "splits": [_run_json(run) for run in self.splits],
                "budget": _run_json(self.budget),
                "budgets": [_run_json(run) for run in self.budgets],
                "coefficients": _with_own(_cited(fp_quantisation.LAW), self.run.law),
                "notes": self.notes,
            }
        )


def _run_json(run: fp_quantisation.Run) -> dict[str, Any]:
    return {
        **{name: value for name, value in to_json(run).items() if name != "law"},
        "bits": run.bits,
        "loss": run.loss,
        "lossless": run.lossless,
        "critical_tokens": run.critical_tokens,
        "compute_flops": run.compute_flops,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class WidthAnswer:
    """FP4 against FP8 at one point, and the map around it."""

    trials: tuple[quartet.Trial, ...]
    fp4_wins_tokens: tuple[float, float]  # between these FP4 both ways beats FP8 both ways
    choices: tuple[tuple[int, ...], ...]  # the map: rows of model sizes, columns of tokens a parameter
    notes: tuple[str, ...]

    @property
    def best(self) -> quartet.Trial:
        """The choice of the lowest loss."""
        return min(self.trials, key=lambda trial: trial.loss)

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on."""
        (low, high), inputs = self.fp4_wins_tokens, to_json(self.trials[0])
        outcomes = [
            {
                "forward": t.choice.forward,
                "backward": t.choice.backward,
                "forward_ratio": t.speedups[0],
                "step_ratio": t.speedups[1],
                "loss": t.loss,
                "is_best": t is self.best,
            }
            for t in self.trials
        ]
        return to_json(
            {
                "law": quartet.LAW,
                **{key: value for key, value in inputs.items() if key != "choice"},
                "outcomes": outcomes,
                "fp4_wins_from_tokens": low,
                "fp4_wins_to_tokens": high,
                "map": {
                    "num_parameters": MAP_PARAMETERS,
                    "tokens_per_parameter": MAP_TOKENS_PER_PARAMETER,
                    "best": [[str(quartet.CHOICES[i]) for i in row] for row in self.choices],
                },
                "coefficients": _cited(quartet.LAW),
                "notes": self.notes,
            }
        )


def _cited(law: str) -> list[dict[str, Any]]:
    return [
        {"name": f.name, "value": f.value, "basis": str(f.basis), "source": f.cite()} for f in facts_of(law).values()
    ]


@typed
def scaling(**settings: Any) -> FormatAnswer | WidthAnswer:
    """Prediction of a law of low-precision training.

    ``law = "fp-quantisation"``: the loss of a run in a float of so many exponent and mantissa bits, the best split of
    every width, the data beyond which it gets worse, the best width for a compute budget. ``law = "quartet"``: whether
    FP4 or FP8 products give the lower loss in the same time.
    """
    inputs = read_asked(ScalingQuestion, settings, SCALING_BY_NAME)
    law = inputs.law or LAWS[0]
    if law not in LAWS:
        near = nearest(law, LAWS, 1)
        raise ScenarioError(f"law: got {law!r}; write " + (f"{near[0]!r}." if near else f"one of {', '.join(LAWS)}."))
    unread = _READ[LAWS[1] if law == LAWS[0] else LAWS[0]] & inputs.written().keys()
    if unread:
        raise ScenarioError(f"{', '.join(sorted(unread))}: the law {law} does not ask for it; leave it out.")
    notes = [
        f"{name}: {default:g} (default)"
        for name, default in (("parameters", PARAMETERS), ("tokens", TOKENS))
        if getattr(inputs, name) is None
    ]
    return _formats(inputs, notes) if law == LAWS[0] else _widths(inputs, notes)


_READ = {
    LAWS[0]: frozenset({"exponent_bits", "mantissa_bits", "block", "compute_flops", "coefficients"}),
    LAWS[1]: frozenset({"device", "fp4_ratio", "parameters_frac", "tokens_frac", "runs", "same_size"}),
}
"""Settings that only one law asks for."""


def _formats(inputs: ScalingQuestion, notes: list[str]) -> FormatAnswer:
    size, tokens = inputs.parameters or PARAMETERS, inputs.tokens or TOKENS
    exponent = 4 if inputs.exponent_bits is None else inputs.exponent_bits
    mantissa = 3 if inputs.mantissa_bits is None else inputs.mantissa_bits
    block = inputs.block or BLOCK
    notes += [
        f"{name}: {value} (default)"
        for name, value in (("exponent_bits", exponent), ("mantissa_bits", mantissa), ("block", block))
        if getattr(inputs, name) is None
    ]
    law = _law(inputs.coefficients, notes)
    run = fp_quantisation.Run(
        num_parameters=size,
        num_tokens=tokens,
        exponent_bits=exponent,
        mantissa_bits=mantissa,
        block_elements=block,
        law=law,
    )
    splits = [fp_quantisation.best_split(bits, law) for bits in fp_quantisation.WIDTHS]
    return FormatAnswer(
        run=run,
        splits=tuple(replace(run, exponent_bits=e, mantissa_bits=m) for e, m in splits),
        budget=fp_quantisation.best_width(inputs.compute_flops or run.compute_flops, block, law),
        budgets=tuple(fp_quantisation.best_width(budget, block, law) for budget in BUDGETS_FLOPS),
        notes=tuple(notes),
    )


def _law(text: str | None, notes: list[str]) -> fp_quantisation.Law:
    """The paper's law, with the user's own coefficients in place of those that ``text`` names."""
    published = fp_quantisation.published()
    names = tuple(f.name for f in fields(published))
    own: dict[str, float] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, _, value = (word.strip() for word in part.partition("="))
        if name not in names:
            raise UnknownName("coefficient of the law", name, names)
        number = _positive(value)
        if number is None or name in own:
            raise ScenarioError(f"coefficients: got {part.strip()!r}; write {name} once, as {name}=NUMBER above 0.")
        own[name] = number
    rest = len(names) - len(own)
    if rest:
        which = "constants of the law" if not own else f"the other {rest} constants of the law"
        notes.append(f"{which}: as recalled of the paper; `--json` lists each with its source")
    return replace(published, **own)


def _positive(text: str) -> float | None:
    """A finite number above zero; None where it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number < inf else None


def _with_own(cited: list[dict[str, Any]], law: fp_quantisation.Law) -> list[dict[str, Any]]:
    """The cited coefficients, the user's own in place of those that differ."""
    own = {f.name: getattr(law, f.name) for f in fields(law)}
    published = fp_quantisation.published()
    return [
        {"name": one["name"], "value": own[one["name"]], "basis": "assumed", "source": "your own"}
        if one["name"] in own and own[one["name"]] != getattr(published, one["name"])
        else one
        for one in cited
    ]


def _widths(inputs: ScalingQuestion, notes: list[str]) -> WidthAnswer:
    size, tokens = inputs.parameters or PARAMETERS, inputs.tokens or TOKENS
    ratio = _fp4_ratio(inputs, notes)
    method = _method(inputs, notes)
    is_resized = not inputs.same_size
    sizes = np.array(MAP_PARAMETERS)[:, None]
    data = sizes * np.array(MAP_TOKENS_PER_PARAMETER)
    notes.append("FP8 is taken as lossless (assumed); the law was fitted to models of 30 to 200 million parameters")
    return WidthAnswer(
        trials=tuple(
            quartet.Trial(
                choice=choice,
                num_parameters=size,
                num_tokens=tokens,
                fp4_ratio=ratio,
                method=method,
                is_resized=is_resized,
            )
            for choice in quartet.CHOICES
        ),
        fp4_wins_tokens=quartet.least_tokens(size, ratio, method, is_resized=is_resized),
        choices=tuple(map(tuple, quartet.best_choice(sizes, data, ratio, method, is_resized=is_resized).tolist())),
        notes=tuple(notes),
    )


def _method(inputs: ScalingQuestion, notes: list[str]) -> quartet.Method:
    """Quartet's own shares, where neither a number nor the user's runs say others."""
    known = quartet.known_method()
    shares = {"parameters_frac": known.parameters_frac, "tokens_frac": known.tokens_frac}
    stated = {name: value for name in shares if (value := getattr(inputs, name)) is not None}
    fitted = fitted_shares(inputs.runs) if inputs.runs else {}
    for name, found in fitted.items():
        if name in stated:
            raise ScenarioError(f"{name}: the runs say it, too; leave it or these runs out.")
        end = ", the end of the range: the law cannot explain these runs" if found.is_at_an_end else ""
        notes.append(
            f"{name}: {found.share:.3g} (fitted to {found.num_runs} of the runs, at most "
            f"{percent(found.worst_frac, 2)} off{end})"
        )
    return quartet.Method(**shares | stated | {name: found.share for name, found in fitted.items()})


def _fp4_ratio(inputs: ScalingQuestion, notes: list[str]) -> float:
    """As said; or of a device's peak rates; or the usual two."""
    if inputs.fp4_ratio is not None:
        return inputs.fp4_ratio
    if inputs.device is None:
        notes.append(f"fp4_ratio: {FP4_RATIO:g} (default; products of half the bits at twice the rate)")
        return FP4_RATIO
    device = get_device(inputs.device)
    notes.extend(device.notes)
    four, eight = (_peak(device, rates) for rates in (FP4_RATES, FP8_RATES))
    notes.append(f"fp4_ratio: {four / eight:.3g} (dense peak rates of {device.name})")
    return four / eight


def _peak(device: Device, rates: tuple[str, ...]) -> float:
    found = [device.dense_flops_per_s[rate] for rate in rates if rate in device.dense_flops_per_s]
    if not found:
        raise ScenarioError(
            f"device: {device.name} states no peak rate for {rates[-1]}; write fp4_ratio, or a device such as b200."
        )
    return max(found)
