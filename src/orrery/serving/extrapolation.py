"""Uncertainty of an answer: the errors of such runs when their whole campaign was left out, wider where more is
unknown.

``orrery.serving.intervals`` makes intervals of these factors.
"""

from dataclasses import dataclass

from orrery.base.cost import Spread
from orrery.base.units import percent
from orrery.execution.layout import Deployment
from orrery.execution.shard import shard
from orrery.execution.step import Step
from orrery.numerics.registry import get_format
from orrery.serving.intervals import Bounds, Factors
from orrery.serving.workload import Workload

UNMEASURED = Spread(
    low_80_ratio=0.6,
    high_80_ratio=1.6,
    low_95_ratio=0.4,
    high_95_ratio=2.5,
    because="no measured runs of this kind; assumed",
)
BORROWED = 1.6
"""How much wider an interval becomes when all of the time was predicted with another device's constants."""
EXTRAPOLATED = 1.5
"""The same when all of the time was predicted for sizes outside the measured range."""
VERSIONLESS = 1.25
"""The same where the engine's release is not said: eras of one engine lie so far apart."""
NOTED = 0.05
"""Below this share of the time neither is worth a word."""
SHOWN = 3
"""Number of examples that make the point in a note."""

SHARED = 0.7
"""Share of two predictions' squared log errors that is one and the same error, on one engine and generation: what the
runs of a campaign that was left out have in common (``tools/fit/engines.py`` prints it)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtrapolationShare:
    """Shares of the kernels' time that rest on other devices' constants, and on sizes that nobody measured."""

    borrowed_frac: float
    outside_frac: float
    examples: tuple[str, ...]  # which sizes


def extrapolation_share(done: Step) -> ExtrapolationShare:
    """Extrapolated share of an answer, over all steps that it was made of."""
    borrowed = outside = total = 0.0
    examples: list[str] = []
    for p in done.parts:
        if p.calibration is None:
            continue
        time_s = float(p.time_s.sum())
        total += time_s
        if p.calibration.origin != "device":
            borrowed += time_s
        if beyond := p.outside():
            outside += time_s
            examples.append(f"{p.name} ({beyond})")
    scale = total or 1.0
    return ExtrapolationShare(
        borrowed_frac=borrowed / scale, outside_frac=outside / scale, examples=tuple(dict.fromkeys(examples))
    )


def kind_of_run(deployment: Deployment, mode: str, num_pools: int = 1) -> str:
    """Class of a run for its intervals: its mode, or separate pools for prompts and outputs; and whether the model
    has experts, of whose traffic less is known.
    """
    kind = mode if num_pools == 1 else "pools"
    return f"{kind} experts" if any(b.experts for b in deployment.model.blocks) else kind


def factors_of(deployment: Deployment, kind: str, doubt: ExtrapolationShare) -> Factors:
    """Error factors of one class of run, widened for borrowed constants, extrapolation and unstated settings."""
    factor, because = wider_by(doubt, has_version=bool(deployment.engine.version) or not deployment.engine.has_eras)

    def of(metric: str) -> Spread:
        found = deployment.engine.spreads.get(f"{kind}.{metric}", UNMEASURED)
        if factor != 1.0:
            found = found.widened(factor, found.because + because)
        unrest = deployment.cluster.device.unrest_ratio
        return found if unrest == 1.0 else found.moved_out(unrest, f"{found.because}; {_unrest(deployment)}")

    return Factors(pace=of("tpot_s"), first=of("ttft_s"), power=of("power_w"))


def wider_by(doubt: ExtrapolationShare, *, has_version: bool) -> tuple[float, str]:
    """How much wider (in the logarithm) an interval is than that of runs whose kernels were all measured, and why."""
    factor, because = 1.0, ""
    if doubt.borrowed_frac >= NOTED:
        factor *= 1.0 + doubt.borrowed_frac * (BORROWED - 1.0)
        because += f"; {percent(doubt.borrowed_frac)} of the time rests on constants of related devices"
    if doubt.outside_frac >= NOTED:
        factor *= 1.0 + doubt.outside_frac * (EXTRAPOLATED - 1.0)
        because += f"; {percent(doubt.outside_frac)} of the time is outside the measured sizes"
    if not has_version:
        factor *= VERSIONLESS
        because += "; the engine's version is not known"
    return factor, because


def bounds_of(deployment: Deployment, workload: Workload) -> Bounds:
    """Physical bounds on a run of the deployment: reading active weights once a token, a prompt's arithmetic, the
    boards.

    A token passes every stage of a pipeline, so it waits until each rank of all of them has read its share of the
    weights that one token needs; embeddings are looked up, not read.
    """
    device, model, layout = deployment.cluster.device, deployment.model, deployment.layout
    active = min(1.0, model.num_active_parameters / max(1, model.num_parameters))
    read_bytes = shard(deployment).weight_bytes * layout.pp * active
    if any(b.experts for b in model.blocks):
        read_bytes /= max(1, layout.dp)  # one token's experts may lie on any of the ranks that share them
    _, peak = device.peak_flops_per_s(get_format(deployment.formats.activations).rates)
    flops = 2.0 * sum(b.num_active_parameters for b in model.blocks) * workload.read_tokens
    most_tokens = 1 + (deployment.draft_head.num_tokens if deployment.draft_head else 0)  # of a sequence in a step
    return Bounds(
        least_tpot_s=read_bytes / device.memory_bandwidth_bytes_per_s / most_tokens,
        least_ttft_s=flops / (peak * layout.num_devices),
        least_power_w=device.idle_power_w * layout.num_devices,
        most_power_w=device.power_limit_w * layout.num_devices,
    )


def shared_frac(a: Deployment, b: Deployment) -> float:
    """How much of two answers' errors is the same: all that an engine does on a generation of devices, or nothing."""
    one, other = ((d.engine.name, d.engine.version, d.cluster.device.generation) for d in (a, b))
    return SHARED if one == other else 0.0


def _unrest(deployment: Deployment) -> str:
    device = deployment.cluster.device
    return (
        f"{device.name} was restless while it was measured: intervals lie {device.unrest_ratio:.2f} times further out"
    )


def notes_of(deployment: Deployment, doubt: ExtrapolationShare) -> tuple[str, ...]:
    """Sentences that a reader must see beside the numbers."""
    device, engine = deployment.cluster.device, deployment.engine
    notes = [_unrest(deployment) + "."] if device.unrest_ratio > 1.0 else []
    if not engine.version and engine.has_eras:
        notes.append(
            f"ENGINE VERSION NOT GIVEN: defaults and constants are those of the newest {engine.name} known here; "
            "another release may be far slower. Give yours with --engine-version; the intervals are wider for it."
        )
    if doubt.borrowed_frac >= NOTED:
        notes.append(
            f"{percent(doubt.borrowed_frac)} of the time rests on constants measured on other devices than "
            f"{device.name} ({device.generation}); the intervals are wider for it."
        )
    if doubt.outside_frac >= NOTED:
        notes.append(
            f"{percent(doubt.outside_frac)} of the time is outside the sizes that were measured: "
            f"{'; '.join(doubt.examples[:SHOWN])}; the intervals are wider for it."
        )
    return tuple(notes)
