"""PIM-GPT: one token through weights and caches that are multiplied where they lie."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import geometric_mean

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.offload.shapes import gpt
from orrery.hardware.banked_memory import BankedMemory
from orrery.models.model import Model, SoftmaxAttention
from orrery_papers.pim_gpt.banked import banked
from orrery_papers.shared.estimated import run_of
from orrery_papers.shared.setup import deployment

SCORE_FLOPS, NORM_FLOPS, ACTIVATION_FLOPS = 10.0, 8.0, 15.0  # see [unstated] arithmetic
HEAD_SIZE = 64
EAGER = "the GPU takes a few times longer a token there than launches and bytes explain here: its software is not known"
ENERGY = (
    "energies of reading and opening rows are those of another memory, and the paper's two versions differ by three"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What one token takes."""

    time_s: float
    energy_j: float


def predict(paper: Paper) -> Iterator[Prediction]:
    """Means over the models; the GPU's speed first, for the sweep."""
    pim, cpu = paper.setups["pim"], paper.setups["cpu"]
    found = models(pim)
    inside = [mean_token(pim, model) for model in found]
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


def mean_token(setup: Setup, model: Model) -> Token:
    """A token in the middle of the answer, to whose length the cache's part is proportional."""
    middle = round(setup.number("input_tokens") + setup.number("output_tokens") / 2)
    return token(setup, banked(setup), model, middle)


def token(setup: Setup, memory: BankedMemory, model: Model, context_tokens: int) -> Token:
    """All products in the banks, the rest in the companion chip, one after the other."""
    (block,), head = model.blocks, model.head
    mixer = block.mixer
    assert isinstance(mixer, SoftmaxAttention)
    assert head is not None
    heads, size = mixer.num_heads, mixer.head_size
    products = [(x.out_features, x.in_features, 1) for x in block.linears]
    products += [(context_tokens, size, heads), (size, context_tokens, heads)]
    whole = [(*shape, block.count) for shape in products] + [(head.out_features, head.in_features, 1, 1)]
    time_s = sum(count * memory.product_s(n, k, times) for n, k, times, count in whole)
    time_s += block.count * memory.write_s(2.0 * heads * size * memory.element_bytes)
    flops = block.count * (
        SCORE_FLOPS * heads * context_tokens
        + NORM_FLOPS * block.norm_elements
        + ACTIVATION_FLOPS * block.activation_elements
    )
    time_s += flops / setup.number("fp32_flops_per_s")
    energy_j = sum(count * memory.product_j(n, k, times) for n, k, times, count in whole)
    return Token(time_s=time_s, energy_j=energy_j + setup.number("standby_w") * time_s)


def on_gpu(setup: Setup, model: Model) -> Token:
    """The same answer from a GPU that runs kernel by kernel."""
    d = deployment(setup, model="gpt2", engine=setup.word("baseline_engine"))
    done = run_of(replace(d, model=model), 1, setup.number("input_tokens"), setup.number("output_tokens") - 1.0)
    return Token(time_s=done.tpot_s, energy_j=done.power_w * done.tpot_s)


def on_cpu(setup: Setup, model: Model) -> Token:
    """All weights over the memory's bandwidth."""
    time_s = model.num_parameters * setup.number("baseline_bytes") / setup.number("cpu_memory_bytes_per_s")
    return Token(time_s=time_s, energy_j=setup.number("cpu_power_w") * time_s)
