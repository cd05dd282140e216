"""Redundant gradients against waiting: the same rounds of unequal workers under each scheme. [krishnan-2023]"""

from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, counter, whole
from orrery.training.coding import (
    CodingKnobs,
    Multiplexed,
    Plain,
    Scheme,
    SelectiveRepetition,
    WorkerPace,
    gilbert_elliott,
    gradient_code,
    run_s,
    worker_times_s,
)
from orrery.training.coding.gradient_code import Bools, Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Workers, how long each takes, how often it is slow, and for how many late ones each scheme is built.

    ``selective`` and ``multiplexed`` are burst:window:stragglers. ``fixed_s`` is taken whatever a worker's load, and
    ``load_s`` is the whole data of one job on one worker.
    """

    workers: int = 32
    gradient: int = 3
    selective: str = "1:2:3"
    multiplexed: str = "1:2:4"
    fixed_s: float = 0.5
    load_s: float = 2.0
    slow_ratio: float = 2.5
    scatter_ratio: float = 1.05
    late_frac: float = 0.03
    leave_frac: float = 0.97
    wait_frac: float = 1.0


def run(request: Run) -> tuple[Row, ...]:
    """A row a scheme: its load, the seconds of all jobs, and how far decoded gradients are from their sums."""
    sizes: Sizes = request.sizes
    jobs, workers = whole("steps", request.steps, least=2, most=2000), whole("workers", sizes.workers, most=1024)
    tick, rows = counter(request.progress, 4), list[Row]()
    for name, scheme in schemes(sizes, workers).items():
        rounds = jobs + scheme.delay_rounds
        times_s = times_of(request, scheme, rounds)
        # whoever waits for all of them needs no code: a deadline of nothing is put off until the last is there
        rounds_s, late = run_s(scheme, times_s, 0.0 if name == "none" else sizes.wait_frac)
        rows.append(
            {
                "scheme": name,
                "load_frac": scheme.load_frac,
                "rounds": rounds,
                "total_s": float(rounds_s.sum()),
                "round_s": float(rounds_s.mean()),
                "late_frac": float(late.mean()),
                "decoding_error": decoding_error(scheme, late, jobs),
            }
        )
        tick()
    return tuple(rows)


def schemes(sizes: Sizes, workers: int) -> dict[str, Scheme]:
    """No redundancy, and the three codes as they are set."""
    return {
        "none": Plain(code=gradient_code(workers, 0)),
        "gradient": Plain(code=gradient_code(workers, whole("gradient", sizes.gradient, least=0, most=workers - 1))),
        "selective": SelectiveRepetition.of(workers, _knobs("selective", sizes.selective)),
        "multiplexed": Multiplexed.of(workers, _knobs("multiplexed", sizes.multiplexed)),
    }


def _knobs(name: str, text: str) -> CodingKnobs:
    try:
        burst, window, stragglers = map(int, text.split(":"))
    except ValueError:
        raise ScenarioError(f"set: {name} = {text!r}; write burst:window:stragglers, such as 1:2:4.") from None
    return CodingKnobs(num_stragglers=stragglers, burst_rounds=burst, window_rounds=window)


def times_of(request: Run, scheme: Scheme, rounds: int) -> Floats:
    """Seconds (rounds, workers) for the scheme's load: drawn, or as much slower as the user's trace has each worker."""
    sizes: Sizes = request.sizes
    pace = WorkerPace(
        fixed_s=sizes.fixed_s,
        per_load_s=sizes.load_s,
        slow_ratio=sizes.slow_ratio,
        scatter_ratio=sizes.scatter_ratio,
    )
    if not request.data:
        slow = gilbert_elliott(
            sizes.workers, rounds, late_frac=sizes.late_frac, leave_frac=sizes.leave_frac, seed=request.seed
        )
        return worker_times_s(pace, scheme.load_frac, slow, request.seed)
    trace = np.asarray(request.data.get("times", np.zeros(0)), dtype=np.float64)
    if trace.ndim != 2 or trace.shape[1] != sizes.workers or not (trace > 0.0).all():
        raise ScenarioError(f"data: write an array times (rounds, {sizes.workers}) of seconds above 0.")
    slower = np.resize(trace / trace.min(), (rounds, sizes.workers))
    return slower * (pace.fixed_s + scheme.load_frac * pace.per_load_s)


def decoding_error(scheme: Scheme, late: Bools, jobs: int) -> float:
    """The most by which gradients, decoded without the late answers, differ from the sums of all chunks."""
    few = min(jobs, MAX_DECODED)
    chunks = np.random.default_rng(0).standard_normal((few, scheme.num_chunks, 3))
    found = scheme.decode(chunks, late[: few + scheme.delay_rounds])
    return float(np.abs(found - chunks.sum(axis=1)).max())


MAX_DECODED = 4

EXPERIMENT = Experiment(
    name="straggler-coding",
    question="Do redundant gradients finish sooner than waiting for the slowest workers?",
    run=run,
    num_steps=80,
    claims=("sequential-gradient-coding",),
    sizes=Sizes,
    reads=("data",),
    keys=("scheme",),
)
