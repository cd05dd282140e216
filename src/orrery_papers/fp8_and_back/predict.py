"""To FP8 and back: a small decoder whose operands lose bits, over seeds and learning rates."""

from collections.abc import Iterator, Mapping
from functools import cache

from orrery.base.experiment import Row
from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.scenario.experiment import run_experiment

BASE, FEW_MANTISSA, FEW_EXPONENT = "e8m7", "e8m1", "e3m7"


@cache
def rows_of(steps: int) -> Mapping[str, Row]:
    """Result of every format after so many steps."""
    return {str(row["format"]): row for row in run_experiment("fp8-and-back", steps=steps).rows}


def predict(paper: Paper) -> Iterator[Prediction]:
    """Sharpness, loss and failures by format."""
    steps = int(paper.setups["decoder"].number("num_steps"))
    rows, fewer = rows_of(steps), paper.setups["decoder"].word("weights_format")

    def describe(column: str) -> str:
        return ", ".join(f"{name} {float(row[column]):.3g}" for name, row in rows.items())

    def ratio(column: str) -> float:
        return float(rows[fewer][column]) / float(rows[BASE][column])

    differs = "a small decoder in its first steps; the paper trains language models for days"
    for claim, column in (("sharpness-rises", "sharpness_frac"), ("loss-rises", "loss")):
        yield Prediction(claim=claim, predicted=ratio(column), because=describe(column), differs=differs)
    failed = {name: float(row["failed_frac"]) for name, row in rows.items()}
    least = max(share for name, share in failed.items() if not name.startswith(("e8", "fp32")))
    yield Prediction(claim="exponent-breakdown", predicted=least, because=describe("failed_frac"), differs=differs)
    yield Prediction(
        claim="exponent-over-mantissa",
        predicted=failed[FEW_EXPONENT] - failed[FEW_MANTISSA],
        because="operands without scales: gradients fall below the least number of few exponent bits",
        differs=differs,
    )
