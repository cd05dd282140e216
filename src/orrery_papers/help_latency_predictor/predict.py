"""HELP: how ten timings on unseen kinds of machines rank networks, against multiply-adds and a start from nothing."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.predictors.studies.few_shot_latency import EMBEDDING, EXPERIMENT, SCRATCH

FLOPS = "flops-line"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Means over simulated machines of kinds that were not learnt from."""
    rows = EXPERIMENT(steps=int(paper.setups["nas-bench-201"].number("num_steps")))
    every = {str(row["rule"]): row for row in rows if row["machines"] == "all"}
    rank = {name: float(row["rank_correlation"]) for name, row in every.items()}
    ours = every[EMBEDDING]
    yield Prediction(
        claim="rank-correlation",
        predicted=rank[EMBEDDING],
        because=f"{ours['num_machines']} machines, the worst {float(ours['least_rank_correlation']):.3f}; median error "
        f"{float(ours['median_error_frac']):.1%}; simulated machines are more alike than real ones",
    )
    yield Prediction(
        claim="flops-rank-correlation",
        predicted=rank[FLOPS],
        because=f"the worst {float(every[FLOPS]['least_rank_correlation']):.3f}, where launches hide kernels",
    )
    yield Prediction(
        claim="over-flops",
        predicted=rank[EMBEDDING] / rank[FLOPS],
        because="the embedding tells what limits a machine; multiply-adds do not",
    )
    yield Prediction(
        claim="over-scratch",
        predicted=rank[EMBEDDING] / rank[SCRATCH],
        because=f"{rank[SCRATCH]:.2f} from nothing, {rank['encoded-line']:.2f} by a straight line; the physics refit, "
        f"which knows data sheet and rules, {rank['physics-refit']:.3f}",
    )
