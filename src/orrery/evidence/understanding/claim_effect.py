"""A paper's claim beside what its technique would do to the reader's own deployment, by ``orrery what-if``.

The claim is the paper's; the effect is orrery's, read from the answer of the command, so that both show one number.
Where nothing can be computed, words say why.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from orrery.evidence.amounts import amount, metric_name
from orrery.evidence.feed.entry import Classification, NumericClaim
from orrery.scenario.levers import lever_of
from orrery.scenario.what_if.metrics import BY_NAME, CHOICES

Result = Mapping[str, Any]
"""One of the ``results`` of ``orrery what-if --json``."""

MAX_TECHNIQUES = 6
"""Techniques of one paper that are tried in turn; each may take a simulation."""

FIGURES: Mapping[str, str] = {
    **dict.fromkeys(("ttft", "time_to_first_token"), "ttft"),
    **dict.fromkeys(("tpot", "tbt", "itl", "time_per_output_token", "time_between_tokens", "decode_time"), "tpot"),
    **dict.fromkeys(("decode_speedup", "decode_latency", "decode_time_per_token"), "tpot"),
    **dict.fromkeys(("latency", "e2e", "e2e_latency", "end_to_end_latency", "request_latency"), "latency"),
    **dict.fromkeys(("throughput", "output_throughput", "training_throughput", "throughput_per_device"), "throughput"),
    **dict.fromkeys(("cost", "serving_cost", "training_cost"), "cost"),
    **dict.fromkeys(("energy", "energy_efficiency", "energy_per_token"), "energy"),
    **dict.fromkeys(("memory", "peak_memory", "memory_use", "memory_usage"), "memory"),
    **dict.fromkeys(("step_time", "iteration_time"), "step_time"),
    **dict.fromkeys(("run_time", "training_time"), "run_time"),
    **dict.fromkeys(("speedup", "end_to_end_speedup", "time", "performance"), ""),
}
"""Word of ``--metric`` for what a claim is about; blank where the claim leaves it open, so that the deployment's own
metric is meant."""

SEARCHED: Mapping[str, str] = dict.fromkeys(
    ("capacity", "request_rate", "goodput"),
    "a highest rate within an SLO is searched by `orrery simulate --find-capacity`.",
)
"""Why nothing is said of what another command finds."""

_COMPARED = ("_ratio", "_reduction", "_increase", "_gain", "_improvement")
_STATISTICS = ("_mean", "_p50", "_p90", "_p95", "_p99")
_COMPUTED = ("changes", "no effect")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimEffect:
    """The deployment's figure that a claim is about, without the technique and with it; or why there is none."""

    because: str
    technique: str = ""
    metric: str = ""  # a name of scenario.what_if.metrics
    before: float | None = None
    after: float | None = None
    low_80: float | None = None  # of the difference, a share, as ``orrery what-if`` prints it
    high_80: float | None = None

    @property
    def is_computed(self) -> bool:
        """Whether there are numbers."""
        return self.before is not None and self.after is not None

    @property
    def difference_frac(self) -> float | None:
        """With the technique over without it, less one."""
        return self.after / self.before - 1.0 if self.before and self.after is not None else None


def askable(understood: Classification) -> tuple[str, ...]:
    """The paper's techniques that a deployment can be asked about, the likeliest first."""
    found = [name for name, _ in understood.techniques if (lever := lever_of(name)) and lever.questions]
    return tuple(found[:MAX_TECHNIQUES])


def why_none(understood: Classification, no_use: str = "") -> str:
    """Why no deployment can be asked about a paper that has no such technique; ``no_use`` is its file's reason."""
    if no_use:
        return f"No command takes it: {no_use}."
    if not understood.techniques:
        return "It resembles no technique that orrery could switch on."
    name = understood.techniques[0][0]
    if (lever := lever_of(name)) is None:
        return f"No command takes {name}."
    return f"{name} changes no deployment; it is tried by `{lever.command}`."


def is_computed(found: Result) -> bool:
    """Whether the technique could be tried in the deployment."""
    return found["outcome"] in _COMPUTED


def answer_of(names: Sequence[str], ask: Callable[[str], Result]) -> Result | None:
    """The answer for the likeliest technique that this deployment can take; of none, why the likeliest cannot be.

    Techniques after it are not asked. None where there is no name.
    """
    first: Result | None = None
    for name in names:
        found = ask(name)
        if is_computed(found):
            return found
        first = first or found
    return first


def effect_of(claim: NumericClaim, found: Result) -> ClaimEffect:
    """Effect that a claim is about, in the deployment of that answer."""
    name, because = str(found["technique"]), str(found["because"])
    if claim.metric.startswith("baseline_"):
        return ClaimEffect(technique=name, because="the baseline's number, without the technique.")
    if not is_computed(found):
        return ClaimEffect(technique=name, because=because)
    stem = _stem(claim.metric)
    if stem in SEARCHED:
        return ClaimEffect(technique=name, because=SEARCHED[stem])
    if stem not in FIGURES or not _is_like(claim, FIGURES[stem]):
        return ClaimEffect(technique=name, because=f"`orrery what-if` compares no {metric_name(claim.metric)}.")
    word = FIGURES[stem]
    metric = next((m for m in CHOICES.get(word, (found["metric"],)) if m in found["difference"]), "")
    if not metric:
        return ClaimEffect(technique=name, because=f"this deployment has no {word or found['metric']}.")
    difference = found["difference"][metric]
    return ClaimEffect(
        technique=name,
        metric=metric,
        before=found["without"][metric],
        after=found["with"][metric],
        low_80=difference["low_80"],
        high_80=difference["high_80"],
        because=because,
    )


def _stem(metric: str) -> str:
    """Subject of a metric: ``ttft`` of ``ttft_p50_ratio``."""
    for ends in (_COMPARED, _STATISTICS):
        metric = next((metric.removesuffix(end) for end in ends if metric.endswith(end)), metric)
    return metric


def _is_like(claim: NumericClaim, word: str) -> bool:
    """Whether the claim compares, or counts in the unit of the figure: two accuracies are no two times."""
    return claim.unit in ("ratio", "frac") or any(claim.unit == BY_NAME[name].unit for name in CHOICES.get(word, ()))


def written(effect: ClaimEffect, unit: str) -> str:
    """The effect as a claim of that unit is written: ``1.2x``, ``17 % less``, ``20 ms → 16 ms``; with its interval.

    >>> slower = ClaimEffect(because="", metric="tpot_s", before=0.02, after=0.016, low_80=-0.3, high_80=-0.1)
    >>> [written(slower, unit) for unit in ("ratio", "frac", "s")]
    ['1.25x (80 %: 1.11x to 1.43x)', '20 % less (80 %: 30 % less to 10 % less)', '20 ms → 16 ms']
    """
    frac = effect.difference_frac
    if effect.before is None or effect.after is None or frac is None:
        return ""
    metric = BY_NAME[effect.metric]
    if unit not in ("ratio", "frac"):
        return f"{amount(effect.before, metric.unit)} → {amount(effect.after, metric.unit)}"
    if abs(frac) < _UNSEEN_FRAC:
        return "no change"
    form: Literal["ratio", "frac"] = "ratio" if unit == "ratio" else "frac"
    around = ""
    if effect.low_80 is not None and effect.high_80 is not None:
        ends = [_figure(end, is_rate=metric.is_rate, form=form) for end in (effect.low_80, effect.high_80)]
        ends = ends if metric.is_rate or form == "frac" else ends[::-1]
        around = f" (80 %: {ends[0]} to {ends[1]})"
    return _figure(frac, is_rate=metric.is_rate, form=form) + around


_UNSEEN_FRAC = 5e-4
"""A difference below half of the last digit that is shown."""


def _figure(frac: float, *, is_rate: bool, form: Literal["ratio", "frac"]) -> str:
    if form == "frac":
        return f"{abs(100.0 * frac):.2g} % {'less' if frac < 0.0 else 'more'}"
    times = 1.0 + frac if is_rate else 1.0 / (1.0 + frac)
    return f"{times:.2f}x" if times < 10.0 else f"{times:.3g}x"


def figure_of(effect: ClaimEffect) -> str:
    """Which figure of the deployment it is: TTFT, output throughput; empty where none is computed."""
    if not effect.is_computed:
        return ""
    metric = BY_NAME[effect.metric]
    return metric.short if metric.short.isupper() else f"{metric.words[0].lower()}{metric.words[1:]}"


def sentence(effect: ClaimEffect, unit: str) -> str:
    """The effect, of which figure and technique, and why; without numbers, why there are none."""
    if not effect.is_computed:
        return f"not computed: {effect.because}"
    return f"{written(effect, unit)} in {figure_of(effect)} with {effect.technique}; because {effect.because}"


def effects(claims: Sequence[NumericClaim], found: Result | None, why: str) -> Iterator[ClaimEffect]:
    """One for each claim; ``why`` stands where no technique could be asked about."""
    for claim in claims:
        yield ClaimEffect(because=why) if found is None else effect_of(claim, found)
