"""Rules that a layout must satisfy: one list for a single question and for a search of millions.

A rule is a name, a vectorised test, and a sentence with the offending numbers and the nearest ones that work.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.job import TrainingJob
from orrery.models.model import SoftmaxAttention
from orrery.training.columns import SHARDINGS, Columns
from orrery.training.schedules.registry import get_schedule
from orrery.training.stage_layers import is_told, rest_of

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing that must hold."""

    name: str
    holds: Callable[[TrainingJob, Columns], Flags]
    says: Callable[[TrainingJob, Columns], str]  # for a single layout that breaks it


def broken(job: TrainingJob, x: Columns) -> dict[str, Flags]:
    """By rule, which layouts break it and none before it: every layout is counted once at most."""
    left = np.ones(len(x), dtype=np.bool_)
    out: dict[str, Flags] = {}
    for rule in RULES:
        holds = rule.holds(job, x)
        out[rule.name] = left & ~holds
        left &= holds
    return out


def refusal(job: TrainingJob, x: Columns) -> str:
    """Why the one layout of ``x`` makes no sense, and the nearest that does; empty where it does."""
    for rule in RULES:
        if not rule.holds(job, x)[0]:
            return rule.says(job, x)
    return ""


def _devices(job: TrainingJob, x: Columns) -> str:
    used = int(x.tp[0] * x.cp[0] * x.pp[0] * x.dp[0])
    have, other = job.cluster.num_devices, int(x.tp[0] * x.cp[0] * x.pp[0])
    near = f"write dp = {have // other}" if have % other == 0 else f"write devices = {used}"
    return f"tp x cp x pp x dp = {used} devices, but there are {have}; {near}."


def head_counts(job: TrainingJob) -> tuple[int, ...]:
    """Numbers of heads that tensor parallelism must divide."""
    blocks = (*job.model.encoder, *job.model.blocks)
    return tuple(dict.fromkeys(b.mixer.num_heads for b in blocks if b.mixer))


def _heads_divide(job: TrainingJob, x: Columns) -> Flags:
    """Query heads divide by tp, and by tp x cp where they are dealt out; key/value heads divide tp or by it."""
    ok = np.ones(len(x), dtype=np.bool_)
    ways = x.tp * np.where(x.is_ring, 1, x.cp)
    for heads in head_counts(job):
        ok &= heads % ways == 0
    for block in job.model.blocks:
        if isinstance(block.mixer, SoftmaxAttention):
            kv = block.mixer.num_kv_heads
            ok &= (kv % x.tp == 0) | (x.tp % kv == 0)
    return ok


def _says_heads(job: TrainingJob, x: Columns) -> str:
    heads = head_counts(job)[0]
    return (
        f"tp: {x.tp[0]} (times cp where heads are dealt out) does not divide {heads} attention heads of "
        f"{job.model.name}; write {_near(heads, int(x.tp[0]))}."
    )


def num_experts(job: TrainingJob) -> int:
    """Routed experts of a layer; 0 = none."""
    return max((b.experts.num_experts for b in job.model.blocks if b.experts), default=0)


def _experts_divide(job: TrainingJob, x: Columns) -> Flags:
    experts = num_experts(job)
    return (experts % x.ep == 0) if experts else (x.ep == 1) & (x.etp == 1)


def _says_experts(job: TrainingJob, x: Columns) -> str:
    experts = num_experts(job)
    if not experts:
        return f"ep: {x.ep[0]} ranks for experts, but {job.model.name} has none; leave ep and etp out."
    near = _near(experts, int(x.ep[0]))
    return f"ep: {x.ep[0]} does not divide the {experts} experts of {job.model.name}; write {near}."


def _expert_ranks(_: TrainingJob, x: Columns) -> Flags:
    return (x.tp * x.cp * x.dp) % (x.ep * x.etp) == 0


def _says_expert_ranks(_: TrainingJob, x: Columns) -> str:
    ranks = int(x.tp[0] * x.cp[0] * x.dp[0])
    return (
        f"ep x etp = {x.ep[0] * x.etp[0]} must divide tp x cp x dp = {ranks}, the ranks that experts are dealt over; "
        f"write ep = {_near(ranks // int(x.etp[0]) or 1, int(x.ep[0]))}."
    )


def _layers(job: TrainingJob) -> int:
    return sum(b.count for b in (*job.model.encoder, *job.model.blocks))


def _stages_fit(job: TrainingJob, x: Columns) -> Flags:
    """A layer at least on every stage; the first and the last chunk may hold the embedding and the head alone."""
    return (x.pp <= _layers(job)) & (x.pp * x.vp <= _layers(job) + 2)


def _says_stages(job: TrainingJob, x: Columns) -> str:
    layers = _layers(job)
    return (
        f"pp x vp = {x.pp[0] * x.vp[0]} chunks for {layers} layers of {job.model.name}; "
        f"write at most {max(1, (layers + 2 * (x.vp[0] > 1)) // int(x.vp[0]))} stages."
    )


def _ends_leave_even(job: TrainingJob, x: Columns) -> Flags:
    """Told ends leave the stages between them as many layers each, in whole chunks; ends are ranks of their own."""
    description = is_told(x)
    if not description.any():
        return ~description
    rest, sharing = rest_of(_layers(job), x)
    each, over = np.divmod(rest, np.maximum(sharing, 1))
    is_even = ((sharing > 0) & (over == 0) & (each > 0)) | ((sharing == 0) & (rest == 0))
    for count in (x.first_stage_layers, x.last_stage_layers, np.where(sharing > 0, each, 0)):
        is_even = is_even & (count % x.vp == 0)
    turned = np.array([get_schedule(name).placement == "v" for name in x.schedules])[x.schedule]
    return ~description | (is_even & (x.pp > 1) & ~turned)


def _says_ends(job: TrainingJob, x: Columns) -> str:
    layers, pp, vp = _layers(job), int(x.pp[0]), int(x.vp[0])
    name, other = "first_stage_layers", "last_stage_layers"
    if not x.first_stage_layers[0]:
        name, other = other, name
    got, other_layers = int(getattr(x, name)[0]), int(getattr(x, other)[0])
    if pp == 1:
        return f"{name}: {got} is of a pipeline's stage; write pp = 2 or more, or leave {name} out."
    schedule = x.schedules[int(x.schedule[0])]
    if get_schedule(schedule).placement == "v":
        return f"{name}: {schedule} holds both ends on one rank; leave {name} out, or write schedule = 1f1b."
    sharing = pp - 1 - (other_layers > 0)
    each = range(vp, layers, vp) if sharing else (0,)
    fits = [
        n for e in each if (n := layers - other_layers - sharing * e) > 0 and n % vp == 0 and other_layers % vp == 0
    ]
    near = sorted(sorted(fits, key=lambda n: abs(n - got))[:2])
    what = f"write {name} = {' or '.join(map(str, near))}" if near else f"leave {other} out"
    chunks = f" in {vp} whole chunks" if vp > 1 else ""
    beside = f" beside {other} = {other_layers}" if other_layers else ""
    return (
        f"{name}: {got}{beside} leaves {layers - other_layers - got} of {layers} layers for {sharing} "
        f"stages, which share them "
        f"evenly{chunks}; {what}."
    )


def _batch_divides(job: TrainingJob, x: Columns) -> Flags:
    return job.global_batch % (x.dp * x.micro_batch) == 0


def _says_batch(job: TrainingJob, x: Columns) -> str:
    each = int(x.dp[0] * x.micro_batch[0])
    below = job.global_batch // each * each
    near = f"{below} or {below + each}" if below else f"{each}"
    return (
        f"global_batch: {job.global_batch} does not divide by dp x micro_batch = {x.dp[0]} x {x.micro_batch[0]}; "
        f"write global_batch = {near}."
    )


def _context_divides(job: TrainingJob, x: Columns) -> Flags:
    return (x.cp == 1) | (job.seq_len % (2 * x.cp) == 0)


def _says_context(job: TrainingJob, x: Columns) -> str:
    return (
        f"cp: {job.seq_len} tokens do not cut into 2 x {x.cp[0]} equal pieces (each rank takes one from either end); "
        f"write cp = {_near(job.seq_len // 2, int(x.cp[0]))}."
    )


def _schedule_runs(job: TrainingJob, x: Columns) -> Flags:
    ok = np.ones(len(x), dtype=np.bool_)
    m = job.global_batch // np.maximum(x.dp * x.micro_batch, 1)
    for number, name in enumerate(x.schedules):
        here = (x.schedule == number) & (x.pp > 1)
        ok[here] = get_schedule(name).sizes.is_allowed(x.pp[here], x.vp[here], m[here])
    return ok & ((x.pp > 1) | (x.vp == 1))


def _says_schedule(job: TrainingJob, x: Columns) -> str:
    name = x.schedules[int(x.schedule[0])]
    if x.pp[0] == 1:
        return f"vp: {x.vp[0]} chunks need a pipeline; write pp = 2 or more, or leave vp out."
    m = job.global_batch // int(x.dp[0] * x.micro_batch[0])
    return f"schedule: {name} {get_schedule(name).sizes.refusal(int(x.pp[0]), int(x.vp[0]), m)}"


def _shards_divide(_: TrainingJob, x: Columns) -> Flags:
    group = x.data_ranks % np.maximum(x.sharding_group, 1) == 0
    second = (x.secondary_group == 0) | (x.data_ranks % np.maximum(x.secondary_group, 1) == 0)
    return group & second & ((x.secondary_group == 0) | (x.pp == 1))


def _says_shards(_: TrainingJob, x: Columns) -> str:
    ranks, group, second = int(x.data_ranks[0]), int(x.sharding_group[0]), int(x.secondary_group[0])
    if second and x.pp[0] > 1:
        return f"secondary_group: {second} means nothing with pp = {x.pp[0]}, which gathers once a step; leave it out."
    word, got = ("sharding_group", group) if ranks % max(group, 1) else ("secondary_group", second)
    return f"{word}: {got} does not divide dp x cp = {ranks}; write {_near(ranks, got)}."


def _shards_gradients(_: TrainingJob, x: Columns) -> Flags:
    """Sharded gradients would have to be reduced for every micro-batch in a pipeline: no framework does."""
    return (x.sharding != SHARDINGS.index("zero2")) | (x.pp == 1)


def _says_gradients(_: TrainingJob, x: Columns) -> str:
    return f"sharding: zero2 with pp = {x.pp[0]} is not run by any framework; write zero1 (or zero3)."


RULES: tuple[Rule, ...] = (
    Rule(
        name="devices",
        says=_devices,
        holds=lambda job, x: x.tp * x.cp * x.pp * x.dp == job.cluster.num_devices,
    ),
    Rule(name="heads", holds=_heads_divide, says=_says_heads),
    Rule(name="experts", holds=_experts_divide, says=_says_experts),
    Rule(name="expert ranks", holds=_expert_ranks, says=_says_expert_ranks),
    Rule(name="stages", holds=_stages_fit, says=_says_stages),
    Rule(name="ends", holds=_ends_leave_even, says=_says_ends),
    Rule(name="batch", holds=_batch_divides, says=_says_batch),
    Rule(name="context", holds=_context_divides, says=_says_context),
    Rule(name="schedule", holds=_schedule_runs, says=_says_schedule),
    Rule(name="shards", holds=_shards_divide, says=_says_shards),
    Rule(name="sharded gradients", holds=_shards_gradients, says=_says_gradients),
)
"""In the order in which they are told."""


def _near(whole: int, got: int) -> str:
    """The divisors of ``whole`` around ``got``."""
    divisors = [n for n in range(1, min(whole, 65536) + 1) if whole % n == 0]
    below = max((n for n in divisors if n <= got), default=1)
    above = min((n for n in divisors if n > got), default=below)
    return f"{below} or {above}" if above != below else f"{below}"
