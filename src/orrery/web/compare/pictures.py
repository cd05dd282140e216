"""Charts of two designs: where the time goes, what fills the memory, and operations under the roofs of both."""

from collections.abc import Callable, Mapping

from orrery.drawing import Axis, Bar, Op, Part, Roof, Slope, roofline, stacked
from orrery.reports.ops import STEPS, StepKind, by_name, ops_of
from orrery.reports.roofs import VECTOR, roofs
from orrery.reports.serving_pictures import memory_figure
from orrery.scenario.ask import Answer
from orrery.web.compare.sides import Side

NAMED = 9
"""Operations that are told apart; the shorter ones are one."""

BESIDE, REST = "host, other steps", "all others"

Known = list[tuple[str, Answer]]


def drawing(name: str, a: Side, b: Side) -> str:
    """One chart; blank where neither design has an answer."""
    known = [(side.letter, side.answer) for side in (a, b) if side.answer]
    return DRAWINGS[name](known) if known else ""


def _times(step: StepKind, title: str, figure: str) -> Callable[[Known], str]:
    """Operations of a step, and what else passes until the token is there: together the figure."""

    def drawn(known: Known) -> str:
        times = [by_name(ops_of(answer.estimate, step)) for _, answer in known]
        longest = sorted({n for t in times for n in t}, key=lambda n: -max(t.get(n, 0.0) for t in times))[:NAMED]
        bars: list[Bar] = []
        for (letter, answer), time in zip(known, times, strict=True):
            whole_s, step_s = getattr(answer.estimate, figure), sum(time.values())
            parts = [Part(name, time.get(name, 0.0)) for name in longest]
            parts.append(Part(REST, max(0.0, step_s - sum(part.value for part in parts))))
            bars.append(Bar(letter, [*parts, Part(BESIDE, max(0.0, whole_s - step_s))]))
        return stacked(bars, Axis("Time", "s"), title=title, says=f"A {STEPS[step]}, and what is added to it")

    return drawn


def _memory(known: Known) -> str:
    return memory_figure([(letter, answer.estimate.memory) for letter, answer in known]).svg


def _roofline(step: StepKind) -> Callable[[Known], str]:
    """A roof or bandwidth that both devices have is drawn once."""

    def drawn(known: Known) -> str:
        slopes: dict[float, list[str]] = {}
        tops: dict[tuple[str, float, bool], list[str]] = {}
        marks: list[Op] = []
        for letter, answer in known:
            device = answer.question.deployment.cluster.device
            ops = [op for op in ops_of(answer.estimate, step) if op.flops > 0 and op.bytes > 0]
            slopes.setdefault(device.memory_bandwidth_bytes_per_s, []).append(letter)
            for roof in roofs(device, ops):
                if not roof.is_dashed or roof.name == VECTOR:
                    tops.setdefault((roof.name, roof.ops_per_s, roof.is_dashed), []).append(letter)
            marks += [
                Op(f"{letter} {o.name}", o.flops / o.bytes, o.flops / o.time_s, o.time_s, kind=letter) for o in ops
            ]
        return roofline(
            [Slope(f"{', '.join(who)} memory", rate) for rate, who in slopes.items()],
            [Roof(f"{', '.join(who)} {name}", rate, dashed) for (name, rate, dashed), who in tops.items()],
            marks,
            title=f"Under the roofs: {STEPS[step]}",
            says="Larger marks take more of the time.",
        )

    return drawn


TITLES: Mapping[str, str] = {
    "token": "Time per output token",
    "first": "Time to first token",
    "memory": "Memory",
    "decode-roof": "Roofline of a decode step",
    "prompts-roof": "Roofline of a prefill step",
}

DRAWINGS: Mapping[str, Callable[[Known], str]] = {
    "token": _times("decode", "Time per output token", "tpot_s"),
    "first": _times("prompts", "Time to first token", "ttft_s"),
    "memory": _memory,
    "decode-roof": _roofline("decode"),
    "prompts-roof": _roofline("prompts"),
}
"""By the name that a file is asked for by."""
