"""FP16 learning on a microcontroller: training steps of tiny networks by the cycles of their products."""

from collections.abc import Iterator

from orrery.base.experiment import Row
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.experiments import rows_of

POINTWISE = "continual"
"""The claim about a layer of one tap."""

OVERHEAD = "instructions around the loops, moves between memories and stalls of the float units that are not counted"
COUNTED = f"{OVERHEAD}; and which multiply-adds the paper counts was not found"


def predict(paper: Paper) -> Iterator[Prediction]:
    """One layer, two networks, and a pointwise layer."""
    for claim in paper.claims:
        if claim.missing:
            continue
        setup = claim.setup
        if claim.metric == "speedup":
            wide, narrow = steps_of(
                setup,
                network="layer",
                channels=setup.number("num_layer_channels"),
                side=setup.number("num_layer_side"),
                taps=1 if claim.id == POINTWISE else 9,
            )
            yield Prediction(
                claim=claim.id,
                predicted=float(narrow["speedup"]),
                differs=OVERHEAD,
                because=f"{wide['macs_per_cycle']:.2f} multiply-adds a cycle in FP32, {narrow['macs_per_cycle']:.2f}",
            )
            continue
        _, narrow = steps_of(setup, network=setup.word("network"))
        rate, cycles = float(narrow["macs_per_cycle"]), float(narrow["cycles"])
        yield Prediction(
            claim=claim.id,
            predicted=float(narrow["step_s"]) if claim.metric == "train_step_time" else rate,
            because=f"{rate * cycles / 1e6:.1f} million multiply-adds in {cycles / 1e6:.2f} million cycles",
            differs=COUNTED,
        )


def steps_of(setup: Setup, **sizes: float | str) -> tuple[Row, ...]:
    """A step in FP32 and one in lanes of FP16 on the set-up's cluster, by orrery experiment small-core-training."""
    return rows_of(
        "small-core-training",
        {
            "cores": setup.number("num_cores"),
            "float_units": setup.number("num_float_units"),
            "banks": setup.number("num_core_banks"),
            "lanes": f"1,{setup.number('num_lanes'):.0f}",
            "clock_hz": setup.number("core_clock_hz"),
            **sizes,
        },
    )
