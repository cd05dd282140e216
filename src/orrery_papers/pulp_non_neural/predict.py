"""Classic learning on eight small cores: inner loops counted, with floats emulated or native, on one core or all."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import mean

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.cluster.cores import Cores
from orrery.kernels.cluster.loops import Loop, loop_cycles

COUNTS = (
    ("nearest neighbours", 3.0, 3.0, 8),
    ("means", 3.0, 3.0, 2),
    ("support vectors", 2.0, 3.0, 2),
    ("bayes", 4.0, 4.0, 2),
    ("forest", 0.0, 6.0, 4),
)
"""Floating-point and other instructions of a turn (two loads and an address; a difference, a product, a sum), and turns
of merging: the best few neighbours, sums of centres, one score, votes."""

LOADS = 2.0
LOOP_INSTRUCTIONS = 2.0
"""Instructions of a turn: loads, and the address and branch where hardware runs no loops."""

CYCLES = "cycles of emulated operations, which are assumed, and the loops' shares of them"
WATTS = "what the chips draw, which is assumed"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Cores, libraries, units, and the other microcontroller."""
    gap8, pulp, other = (paper.setups[name] for name in ("gap8", "pulp-open", "cortex-m4"))
    native = pulp.number("num_float_cycles")
    speedups = per_loop(pulp, lambda loop: alone(pulp, loop, native) / together(pulp, loop, native))
    yield Prediction(
        claim="parallel", predicted=mean(speedups.values()), because=listed(speedups), differs="merging and barriers"
    )
    slow, fast = gap8.number("num_other_emulated_cycles"), gap8.number("num_emulated_cycles")
    libraries = per_loop(gap8, lambda loop: together(gap8, loop, slow) / together(gap8, loop, fast))
    yield Prediction(claim="library", predicted=mean(libraries.values()), because=listed(libraries), differs=CYCLES)
    yield Prediction(
        claim="library-energy",
        predicted=mean(1.0 - 1.0 / x for x in libraries.values()),
        because="the same watts for less time",
        differs=CYCLES,
    )
    units = per_loop(pulp, lambda loop: together(gap8, loop, slow) / together(pulp, loop, native))
    yield Prediction(claim="native", predicted=max(units.values()), because=listed(units), differs=CYCLES)
    yield Prediction(
        claim="native-energy",
        predicted=1.0 - 1.0 / max(units.values()),
        because="the same watts for less time",
        differs=WATTS,
    )
    share = pulp.number("busy_w") / pulp.number("single_core_w")
    best = max(speedups.values())
    yield Prediction(
        claim="parallel-energy",
        predicted=1.0 - share / best,
        because=f"{share:g} times the watts, {best:.2f} times as fast",
        differs=WATTS,
    )
    yield Prediction(
        claim="parallel-latency",
        predicted=1.0 - 1.0 / best,
        because=f"{best:.2f} times as fast",
        differs="how the serial parts and the waits of the cores are shared out among the loops",
    )
    slower = per_loop(other, lambda loop: elsewhere(other, loop) / together(pulp, loop, native))
    yield Prediction(
        claim="m4",
        predicted=mean(slower.values()),
        because=listed(slower),
        differs="the other chip's flash and clock, and code of its compiler, are not modelled",
    )
    watts = pulp.number("busy_w") / other.number("other_busy_w")
    yield Prediction(
        claim="m4-energy",
        predicted=1.0 - watts / mean(slower.values()),
        because=f"{watts:.2f} of its watts",
        differs=WATTS,
    )


def per_loop(setup: Setup, of: Callable[[Loop], float]) -> dict[str, float]:
    """Value of ``of`` for the loop of every algorithm, on the set-up's number of elements."""
    elements = int(setup.number("num_elements"))
    return {
        name: of(Loop(name=name, num_elements=elements, num_floats=floats, num_others=others, num_serial=serial))
        for name, floats, others, serial in COUNTS
    }


def together(setup: Setup, loop: Loop, float_cycles: float) -> float:
    """On all cores."""
    return loop_cycles(loop, cores_of(setup), float_cycles)


def alone(setup: Setup, loop: Loop, float_cycles: float) -> float:
    """On one of them, with a unit to itself."""
    one = replace(cores_of(setup), num_cores=1, num_float_units=min(1, int(setup.number("num_float_units"))))
    return loop_cycles(loop, one, float_cycles)


def elsewhere(setup: Setup, loop: Loop) -> float:
    """On the other microcontroller's one core: slower loads, and a loop in software."""
    extra = LOADS * (setup.number("num_other_load_cycles") - 1.0) + LOOP_INSTRUCTIONS
    one = Cores(num_cores=1, num_float_units=1)
    return loop_cycles(replace(loop, num_others=loop.num_others + extra), one, setup.number("num_float_cycles"))


def cores_of(setup: Setup) -> Cores:
    """The set-up's cluster; no float units where floats are emulated."""
    return Cores(
        num_cores=int(setup.number("num_cores")),
        num_float_units=int(setup.number("num_float_units")),
        num_banks=int(setup.number("num_core_banks")),
        num_barrier_cycles=setup.number("num_barrier_cycles"),
    )


def listed(found: dict[str, float]) -> str:
    """By algorithm."""
    return ", ".join(f"{name} {value:.2f}" for name, value in found.items())
