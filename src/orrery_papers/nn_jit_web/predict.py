"""nn-JIT.web: products of a transformer with the tile that a library ships, and with one tuned in the browser."""

from collections.abc import Iterator

from orrery.base.experiment import Row
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.experiments import rows_of

SMALL = (
    "kernels here differ only in a square tile, on three GPUs of one generation; the paper's baselines also leave out "
    "vector instructions and threads on processors"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The best device's gain."""
    setup = paper.setups["clients"]
    found = {name: tuned_on(setup, name) for name in setup.word("devices").split(", ")}
    yield Prediction(
        claim="speedup",
        predicted=max(float(row["speedup"]) for row in found.values()),
        differs=SMALL,
        because=", ".join(
            f"{name} {row['speedup']:.2f} with tiles {row['tiles']}, {row['candidates']} candidates in "
            f"{row['tuning_s']:.0f} s"
            for name, row in found.items()
        ),
    )


def tuned_on(setup: Setup, device: str) -> Row:
    """The linear layers of one block, each shape once, by orrery experiment browser-tuning."""
    model = get_model(setup.word("model"))
    block = (*model.blocks, *model.encoder)[0]
    (row,) = rows_of(
        "browser-tuning",
        {
            "hidden": model.hidden_size,
            "ffn": max(x.out_features for x in block.linears),
            "tokens": setup.number("input_tokens"),
            "shipped_tile": setup.number("num_tile_side"),
            "compile_s": setup.number("compile_s"),
            "dispatch_s": setup.number("call_s"),
            "budget_s": setup.number("tuning_s"),
        },
        device=device,
    )
    return row
