"""Domino: GPT-3 and Llama-2 under tensor parallelism of one, two and four nodes, with and without slices."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.training.allowed import refusal
from orrery.training.columns import columns_of
from orrery.training.memory import USABLE_FRAC
from orrery_papers.shared.trained import Trained, trained, training_device

ROW_SLICES, COLUMN_SLICES = (1, 2), (1, 2, 4)
Knobs = tuple[tuple[str, float], ...]


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
    """What the best slices make of a case."""

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
        because=f"{best.case}: {best.slices}; {best.exposed_frac:.0%} of the baseline's step was sums",
        differs="sizes, lengths and micro-batches that reached the most are recalled, and how much a sum and the "
        "kernels over it slow each other is one ratio fitted over many runs",
    )
    within = max((g for g in every if g.case.tp <= 8), key=lambda g: g.ratio)
    yield Prediction(
        claim="speedup-one-node",
        predicted=within.ratio,
        because=f"{within.case}: {within.slices}; {within.exposed_frac:.0%} of the baseline's step was sums",
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
    have = USABLE_FRAC * training_device(setup).memory_capacity_bytes
    found: list[Gain] = []
    for case in cases(setup):
        layout = TrainingLayout(tp=case.tp, micro_batch=case.micro_batch, is_sequence_parallel=False)
        plain = job_of(setup, case)
        if refusal(plain, columns_of([layout])):
            continue
        base = trained(plain, layout)
        if base.peak_memory_bytes <= have:
            found.append(_best(setup, case, base))
    return found


def _best(setup: Setup, case: Case, base: Trained) -> Gain:
    tried = {(r, c): trained(sliced(setup, case, r, c), base.layout) for r, c in product(ROW_SLICES, COLUMN_SLICES)}
    (rows, columns), run = min(tried.items(), key=lambda item: item[1].step_s)
    return Gain(
        case=case,
        ratio=base.step_s / run.step_s,
        slices=f"{rows} slices of rows, {columns} of columns",
        exposed_frac=float(base.steps.parts["tensor parallel"][0]) / base.step_s,
    )


def job_of(setup: Setup, case: Case) -> TrainingJob:
    """The case as Megatron-LM runs it."""
    device, recipe = training_device(setup), get_recipe(setup.word("weights_format"))
    per_node = int(setup.number("num_devices_per_node"))
    return TrainingJob(
        model=get_model(case.model),
        recipe=recipe,
        seq_len=case.seq_len,
        global_batch=case.micro_batch,
        cluster=Cluster(device=device, num_devices=case.tp, devices_per_node=min(per_node, case.tp)),
        framework=get_framework(setup.word("engine"), device, recipe.name),
    )


def sliced(setup: Setup, case: Case, rows: int, columns: int) -> TrainingJob:
    """The case with so many slices of the batch and of the columns."""
    knobs: Knobs = (("row_slices", float(rows)), ("column_slices", float(columns)))
    return replace(job_of(setup, case), tensor_overlap="domino", tensor_knobs=knobs)
