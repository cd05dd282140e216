"""The host's work for a step is not hidden behind the device: it adds to every step, s times as long as assumed.

Overlap is off, and what a step costs the host whatever its batch is multiplied.
"""

from collections.abc import Sequence

from orrery.base.units import text
from orrery.calibrate.compare.cause import Cause, between, only_serving
from orrery.calibrate.compare.change import deployment_of, on_engine
from orrery.calibrate.compare.run import Run

LONGEST_S = 0.05
"""Work of the host for a step up to which it is tried: twenty steps a second."""


def ladder(runs: Sequence[Run]) -> Sequence[float]:
    """Multiples of the engine's own time, from that to the longest that is tried."""
    own = [s for run in runs if (one := only_serving(run)) and (s := deployment_of(one).engine.step_s) > 0.0]
    return between(1.0, max(2.0, LONGEST_S / min(own)), 6)(runs) if own else ()


def change(run: Run, severity: float) -> Run | None:
    """Steps that wait for their host."""
    if not (one := only_serving(run)):
        return None
    return on_engine(one, overlap_frac=0.0, step_s=deployment_of(one).engine.step_s * severity)


def describe(run: Run, severity: float) -> str:
    """Wording of the time that a step waits for the host."""
    own = deployment_of(one).engine.step_s if (one := only_serving(run)) else 0.0
    return f"{text(own * severity, 's')} of the host's work added to every step, not hidden behind the device"


CAUSE = Cause(
    name="synchronous-host",
    title="a host that the device waits for at every step",
    ladder=ladder,
    change=change,
    describe=describe,
    shows="The same time is added to every step, and so to every token, whatever the load; short steps suffer most.",
    hides="Training, and steps that take much longer than the added time, come out as predicted.",
    checks=(
        "vLLM --async-scheduling, SGLang's overlap scheduler (--disable-overlap-schedule?), multi-step scheduling",
        "guided decoding, logprobs, penalties, custom logits processors: they make sampling wait for the CPU",
        "nsys profile: gaps between graph launches; py-spy dump of the engine's process",
    ),
)
