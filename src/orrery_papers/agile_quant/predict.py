"""Agile-Quant: a prompt's linear layers in narrow lanes and with fewer tokens, against FP16."""

from collections.abc import Iterator

from orrery.base.experiment import Row
from orrery.base.units import percent
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.models.model import SoftmaxAttention
from orrery_papers.shared.experiments import rows_of

DIFFERS = "the device, the prompt and the share of dropped tokens are assumed"


def predict(paper: Paper) -> Iterator[Prediction]:
    """8 and 4 bits."""
    for claim in paper.claims:
        if claim.missing:
            continue
        setup = claim.setup
        bits = int(setup.number("num_weight_bits")), int(setup.number("num_activation_bits"))
        rows = lanes(setup)
        (wide, *_), (whole, *fewer) = (at(rows, *widths) for widths in ((16, 16), bits))
        narrow = fewer[0] if fewer else whole
        yield Prediction(
            claim=claim.id,
            predicted=float(wide["prompt_s"]) / float(narrow["prompt_s"]),
            differs=DIFFERS,
            because=f"{wide['prompt_s']:.1f} s in FP16, {whole['prompt_s']:.1f} s with weights of {bits[0]} and "
            f"activations of {bits[1]} bits, {narrow['prompt_s']:.1f} s with "
            f"{percent(setup.number('kept_tokens_frac'))} of the tokens",
        )


def lanes(setup: Setup) -> tuple[Row, ...]:
    """Every pair of widths, with every token and with some dropped, by orrery experiment narrow-lanes."""
    (block,) = get_model(setup.word("model")).blocks
    mixer = block.mixer
    assert isinstance(mixer, SoftmaxAttention)
    hidden = mixer.num_heads * mixer.head_size
    return rows_of(
        "narrow-lanes",
        {
            "hidden": hidden,
            "ffn": max(x.out_features for x in block.linears),
            "layers": block.count,
            "heads": mixer.num_heads,
            "tokens": setup.number("input_tokens"),
            "drop_frac": 1.0 - setup.number("kept_tokens_frac"),
            "dropped_after": setup.number("num_pruned_after_layers"),
            "cores": setup.number("num_cores"),
            "clock_hz": setup.number("core_clock_hz"),
            "register_bits": setup.number("num_register_bits"),
            "vector_units": setup.number("num_vector_units"),
            "memory_bytes_per_s": setup.number("memory_bytes_per_s"),
        },
    )


def at(rows: tuple[Row, ...], weight_bits: int, activation_bits: int) -> list[Row]:
    """Rows of those widths: all tokens first, then fewer."""
    return [r for r in rows if (r["weight_bits"], r["activation_bits"]) == (weight_bits, activation_bits)]
