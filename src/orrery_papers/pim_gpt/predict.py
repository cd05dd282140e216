"""PIM-GPT: one token through weights and caches that are multiplied where they lie."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import geometric_mean

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.offload.shapes import gpt
from orrery.models.model import Model
from orrery_papers.shared.estimated import run_of
from orrery_papers.shared.experiments import rows_of
from orrery_papers.shared.setup import deployment

HEAD_SIZE = 64
MEMORY = (
    *("num_channels", "num_banks", "column_bytes", "column_s", "row_bytes", "open_s", "close_s", "channel_bytes_per_s"),
    *("open_j", "read_j_per_bytes", "pin_j_per_bytes", "standby_w"),
)
"""Inputs of the set-up that the experiment reads under the same names."""
EAGER = "the GPU takes a few times longer a token there than launches and bytes explain here: its software is not known"
ENERGY = (
    "energies of reading and opening rows are those of another memory, and the paper's two versions differ by three"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Cost of one token."""

    time_s: float
    energy_j: float


def predict(paper: Paper) -> Iterator[Prediction]:
    """Means over the models; the GPU's speed first, for the sweep."""
    pim, cpu = paper.setups["pim"], paper.setups["cpu"]
    found = models(pim)
    inside = in_memory(pim)
    gpu = [on_gpu(pim, model) for model in found]
    yield compared("speedup-gpu", gpu, inside, "time_s", EAGER)
    roofs = [on_cpu(cpu, model) for model in found]
    yield compared(
        "speedup-cpu", roofs, inside, "time_s", "the processor is a bare roof here; a framework's calls are not in it"
    )
    for name, theirs in (("gpu", gpu), ("cpu", roofs)):
        for version in ("", "-later"):
            yield compared(
                f"energy-{name}{version}",
                theirs,
                inside,
                "energy_j",
                ENERGY if name == "cpu" else f"{EAGER}; {ENERGY}",
            )


def compared(claim: str, theirs: list[Token], inside: list[Token], what: str, differs: str) -> Prediction:
    """The geometric mean of the ratios, and their range."""
    ratios = [getattr(old, what) / getattr(new, what) for old, new in zip(theirs, inside, strict=True)]
    kind, unit = (1e3, "ms") if what == "time_s" else (1e3, "mJ")
    ends = f"{getattr(inside[0], what) * kind:.3g} to {getattr(inside[-1], what) * kind:.3g} {unit} a token"
    words = f"{min(ratios):.3g} to {max(ratios):.3g} over the models; in memory {ends}"
    return Prediction(claim=claim, predicted=geometric_mean(ratios), because=words, differs=differs)


def models(setup: Setup) -> list[Model]:
    """GPTs of the shapes that the set-up lists."""
    shapes = [word.strip().split("x") for word in setup.word("layer_shapes").split(",")]
    return [gpt(int(layers), int(width), num_heads=int(width) // HEAD_SIZE) for layers, width in shapes]


def in_memory(setup: Setup) -> list[Token]:
    """A token of each model in the middle of the answer, to whose length the cache's part is proportional; by orrery
    experiment memory-banks."""
    middle = round(setup.number("input_tokens") + setup.number("output_tokens") / 2)
    sizes: dict[str, float | str] = {name: setup.number(name) for name in MEMORY}
    sizes |= {"shapes": setup.word("layer_shapes"), "context_tokens": middle}
    sizes |= {"companion_flops_per_s": setup.number("fp32_flops_per_s"), "num_head": HEAD_SIZE}
    rows = rows_of("memory-banks", sizes)
    return [Token(time_s=float(row["token_s"]), energy_j=float(row["token_j"])) for row in rows]


def on_gpu(setup: Setup, model: Model) -> Token:
    """The same answer from a GPU that runs kernel by kernel."""
    d = deployment(setup, model="gpt2", engine=setup.word("baseline_engine"))
    done = run_of(replace(d, model=model), 1, setup.number("input_tokens"), setup.number("output_tokens") - 1.0)
    return Token(time_s=done.tpot_s, energy_j=done.power_w * done.tpot_s)


def on_cpu(setup: Setup, model: Model) -> Token:
    """All weights over the memory's bandwidth."""
    time_s = model.num_parameters * setup.number("baseline_bytes") / setup.number("cpu_memory_bytes_per_s")
    return Token(time_s=time_s, energy_j=setup.number("cpu_power_w") * time_s)
