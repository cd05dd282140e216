"""The host's work for a step is not hidden behind the device: it adds to every step, s times as long as assumed.

Overlap is off, and what a step costs the host whatever its batch is multiplied.
"""

from orrery.base.units import text
from orrery.calibrate.compare.cause import Cause, between, only_serving
from orrery.calibrate.compare.change import deployment_of, on_engine
from orrery.calibrate.compare.run import Run


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
    ladder=between(1.0, 30.0),
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
