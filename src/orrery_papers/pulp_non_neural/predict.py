"""Classic learning on eight small cores: inner loops counted, with floats emulated or native, on one core or all."""

from collections.abc import Iterator, Mapping
from statistics import mean

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.experiments import rows_of

Cycles = Mapping[str, float]
"""By algorithm."""

CYCLES = "cycles of emulated operations, which are assumed, and the loops' shares of them"
WATTS = "what the chips draw, which is assumed"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Cores, libraries, units, and the other microcontroller."""
    gap8, pulp, other = (paper.setups[name] for name in ("gap8", "pulp-open", "cortex-m4"))
    native = together(pulp, pulp.number("num_float_cycles"))
    speedups = over(together(pulp, pulp.number("num_float_cycles"), cores=1), native)
    yield Prediction(
        claim="parallel", predicted=mean(speedups.values()), because=listed(speedups), differs="merging and barriers"
    )
    slow = together(gap8, gap8.number("num_other_emulated_cycles"))
    libraries = over(slow, together(gap8, gap8.number("num_emulated_cycles")))
    yield Prediction(claim="library", predicted=mean(libraries.values()), because=listed(libraries), differs=CYCLES)
    yield Prediction(
        claim="library-energy",
        predicted=mean(1.0 - 1.0 / x for x in libraries.values()),
        because="the same watts for less time",
        differs=CYCLES,
    )
    units = over(slow, native)
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
    slower = over(elsewhere(other), native)
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


def together(setup: Setup, float_cycles: float, cores: float = 0.0) -> Cycles:
    """On all cores of the set-up's cluster, or on so many, by orrery experiment small-core-learning."""
    return cycles_of(
        elements=setup.number("num_elements"),
        cores=cores or setup.number("num_cores"),
        float_units=setup.number("num_float_units"),
        num_float_cycles=float_cycles,
        banks=setup.number("num_core_banks"),
        num_barrier_cycles=setup.number("num_barrier_cycles"),
    )


def elsewhere(setup: Setup) -> Cycles:
    """On the other microcontroller's one core: slower loads, and a loop in software."""
    return cycles_of(
        elements=setup.number("num_elements"),
        cores=1,
        float_units=1,
        num_float_cycles=setup.number("num_float_cycles"),
        banks=0,
        num_barrier_cycles=0,
        num_load_cycles=setup.number("num_other_load_cycles"),
        hardware_loops=0,
    )


def cycles_of(**sizes: float) -> Cycles:
    """Cycles by algorithm."""
    return {str(row["algorithm"]): float(row["cycles"]) for row in rows_of("small-core-learning", sizes)}


def over(slow: Cycles, fast: Cycles) -> dict[str, float]:
    """How many times as long, by algorithm."""
    return {name: cycles / fast[name] for name, cycles in slow.items()}


def listed(found: Cycles) -> str:
    """By algorithm."""
    return ", ".join(f"{name} {value:.2f}" for name, value in found.items())
