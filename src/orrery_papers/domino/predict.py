"""Domino: GPT-3 and Llama-2 under tensor parallelism of one, two and four nodes, with and without slices."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from orrery.base.errors import ScenarioError
from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.train import TrainAnswer, train
from orrery_papers.shared.trained_by import settings_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One model, cut over so many devices, with one micro-batch."""

    model: str
    tp: int
    seq_len: int
    micro_batch: int

    def __str__(self) -> str:
        return f"{self.model} tp{self.tp}, {self.micro_batch} x {self.seq_len} tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Gain of the best slices in a case."""

    case: Case
    ratio: float
    slices: str
    exposed_frac: float  # of the baseline's step that collectives take


def predict(paper: Paper) -> Iterator[Prediction]:
    """The most over the sweep; and the most inside one node."""
    claims = {claim.id: claim for claim in paper.claims}
    every = gains(claims["speedup"].setup)
    best = max(every, key=lambda g: g.ratio)
    yield Prediction(
        claim="speedup",
        predicted=best.ratio,
        because=f"{best.case}: {best.slices}; {percent(best.exposed_frac)} of the baseline's step was sums",
        differs="sizes, lengths and micro-batches that reached the most are recalled, and how much a sum and the "
        "kernels over it slow each other is one ratio fitted over many runs",
    )
    within = max((g for g in every if g.case.tp <= 8), key=lambda g: g.ratio)
    yield Prediction(
        claim="speedup-one-node",
        predicted=within.ratio,
        because=f"{within.case}: {within.slices}; {percent(within.exposed_frac)} of the baseline's step was sums",
        differs="as over several nodes",
    )


def cases(setup: Setup) -> Iterator[Case]:
    """Yield all cases of the sweep."""
    models = [word.strip() for word in setup.word("models").split(",")]
    degrees = [int(word.strip().removeprefix("tp")) for word in setup.word("layouts").split(",")]
    sizes = product(models, degrees, setup.numbers("context_tokens_swept"), setup.numbers("batches_swept"))
    for model, tp, seq_len, batch in sizes:
        yield Case(model=model, tp=tp, seq_len=int(seq_len), micro_batch=int(batch))


def gains(setup: Setup) -> list[Gain]:
    """The best slices of every case that makes sense and fits."""
    found = (gain(setup, case) for case in cases(setup))
    return [one for one in found if one is not None]


def gain(setup: Setup, case: Case) -> Gain | None:
    """``orrery train --tensor-overlap domino``: its table of slices, against the framework's own way."""
    plain, sliced = answer_of(setup, case, None), answer_of(setup, case, "domino")
    if plain is None or sliced is None:
        return None
    best = min(sliced.table("slices"), key=lambda row: row["step_s"])
    return Gain(
        case=case,
        ratio=plain.step_time_s / best["step_s"],
        slices=f"{best['row_slices']} slices of rows, {best['column_slices']} of columns",
        exposed_frac=plain.parts["tensor parallel"] / plain.step_time_s,
    )


def answer_of(setup: Setup, case: Case, overlap: str | None) -> TrainAnswer | None:
    """The case with one way to hide its sums; None where it makes no sense or does not fit."""
    given = {
        "model": case.model,
        "devices": case.tp,
        "devices_per_node": min(int(setup.number("num_devices_per_node")), case.tp),
        "tp": case.tp,
        "seq_len": case.seq_len,
        "micro_batch": case.micro_batch,
        "global_batch": case.micro_batch,
        "sharding": "none",
        "recompute": "none",
    }
    settings = settings_of(setup, tensor_overlap=overlap, **given)
    if case.tp <= settings["devices_per_node"]:
        settings.pop("node_link_bytes_per_s", None)
    try:
        found = train(**settings)
    except ScenarioError:
        return None
    return found if isinstance(found, TrainAnswer) else None
