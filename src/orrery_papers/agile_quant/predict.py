"""Agile-Quant: a prompt's linear layers in narrow lanes and with fewer tokens, against FP16."""

from collections.abc import Iterator

from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.lowbit.lanes import VectorCores, product_s
from orrery.models.model import SoftmaxAttention

WIDE = 16
DIFFERS = "the device, the prompt and the share of dropped tokens are assumed"


def predict(paper: Paper) -> Iterator[Prediction]:
    """8 and 4 bits."""
    for claim in paper.claims:
        if claim.missing:
            continue
        setup = claim.setup
        bits = int(setup.number("num_weight_bits")), int(setup.number("num_activation_bits"))
        wide = prompt_s(setup, WIDE, WIDE, 1.0)
        narrow, whole = (prompt_s(setup, *bits, retained) for retained in (setup.number("kept_tokens_frac"), 1.0))
        yield Prediction(
            claim=claim.id,
            predicted=wide / narrow,
            differs=DIFFERS,
            because=f"{wide:.1f} s in FP16, {whole:.1f} s with weights of {bits[0]} and activations of {bits[1]} bits, "
            f"{narrow:.1f} s with {setup.number('kept_tokens_frac'):.0%} of the tokens",
        )


def prompt_s(setup: Setup, weight_bits: int, activation_bits: int, kept_frac: float) -> float:
    """All layers of a prompt; behind the first few only the kept tokens."""
    cores, model = cores_of(setup), get_model(setup.word("model"))
    (block,) = model.blocks
    mixer = block.mixer
    assert isinstance(mixer, SoftmaxAttention)
    total_s, tokens = 0.0, int(setup.number("input_tokens"))
    for layer in range(block.count):
        rows = tokens if layer < setup.number("num_pruned_after_layers") else max(1, round(tokens * kept_frac))
        total_s += sum(
            product_s(rows, x.out_features, x.in_features, weight_bits, activation_bits, cores) for x in block.linears
        )
        total_s += 2.0 * mixer.num_heads * product_s(rows, rows, mixer.head_size, WIDE, WIDE, cores)
    return total_s


def cores_of(setup: Setup) -> VectorCores:
    """The set-up's processor."""
    return VectorCores(
        num_cores=int(setup.number("num_cores")),
        clock_hz=setup.number("core_clock_hz"),
        register_bits=int(setup.number("num_register_bits")),
        num_units=int(setup.number("num_vector_units")),
        has_dot_products=True,
        memory_bytes_per_s=setup.number("memory_bytes_per_s"),
    )
