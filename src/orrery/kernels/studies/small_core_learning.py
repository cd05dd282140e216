"""Classic learning on small cores: on one and on all, with floats native or emulated. [pulp-non-neural-2021]"""

from dataclasses import dataclass, replace

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, numbers, whole
from orrery.kernels.cluster.cores import Cores
from orrery.kernels.cluster.loops import Loop, loop_cycles

COUNTS = {
    "knn": (3.0, 3.0, 8),
    "kmeans": (3.0, 3.0, 2),
    "svm": (2.0, 3.0, 2),
    "bayes": (4.0, 4.0, 2),
    "forest": (0.0, 6.0, 4),
}
"""Floating-point and other instructions of a turn (two loads and an address; a difference, a product, a sum), and turns
of merging: the best few neighbours, sums of centres, one score, votes."""

LOADS, LOOP_INSTRUCTIONS = 2.0, 2.0
"""Instructions of a turn: loads, and the address and branch where hardware runs no loops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Turns of each inner loop, and the cores that share them; ``num_float_cycles`` of one operation, native or not.

    ``num_load_cycles`` above 1 and ``hardware_loops`` 0 describe another kind of core.
    """

    elements: int = 4096
    cores: str = "1,8"
    float_units: int = 4  # 0: floats are emulated
    num_float_cycles: float = 1.0  # of one operation; of an emulated one where there are no units
    banks: int = 16
    num_barrier_cycles: float = 100.0
    num_load_cycles: float = 1.0
    hardware_loops: int = 1
    clock_hz: float = 175e6


def run(request: Run) -> tuple[Row, ...]:
    """A row for each algorithm and number of cores."""
    sizes: Sizes = request.sizes
    for name in ("num_float_cycles", "num_load_cycles", "clock_hz"):
        if not 0.0 < getattr(sizes, name) <= 1e11:
            raise ScenarioError(f"set: {name} = {getattr(sizes, name):g}; write a number above 0.")
    counts = numbers("cores", sizes.cores, least=1, most=1024)
    rows = list[Row]()
    for name, (floats, others, serial) in COUNTS.items():
        more = LOADS * (sizes.num_load_cycles - 1.0) + (0.0 if sizes.hardware_loops else LOOP_INSTRUCTIONS)
        loop = Loop(
            name=name,
            num_elements=whole("elements", sizes.elements, most=10**9),
            num_floats=floats,
            num_others=others + more,
            num_serial=serial,
        )
        first = 0.0
        for count in counts:
            cycles = loop_cycles(loop, _cores(sizes, int(count)), sizes.num_float_cycles)
            first = first or cycles
            rows.append(
                {
                    "algorithm": name,
                    "cores": int(count),
                    "cycles": cycles,
                    "time_s": cycles / sizes.clock_hz,
                    "speedup": first / cycles,
                }
            )
    return tuple(rows)


def _cores(sizes: Sizes, count: int) -> Cores:
    units = whole("float_units", sizes.float_units, least=0, most=1024)
    cluster = Cores(
        num_cores=count,
        num_float_units=units,
        num_banks=whole("banks", sizes.banks, least=0, most=4096),
        num_barrier_cycles=sizes.num_barrier_cycles,
    )
    return cluster if count > 1 else replace(cluster, num_float_units=min(1, units))


EXPERIMENT = Experiment(
    name="small-core-learning",
    question="How long do classic learners take on small cores, and what do more cores and native floats gain?",
    run=run,
    num_steps=1,
    claims=("pulp-non-neural",),
    sizes=Sizes,
    keys=("algorithm", "cores"),
    curve=("cores", "time_s"),
)
