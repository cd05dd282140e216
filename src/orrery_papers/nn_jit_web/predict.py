"""nn-JIT.web: products of a transformer with the tile that a library ships, and with one tuned in the browser."""

from collections.abc import Iterator

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.gemm.naive_tiles import LARGEST_TILE
from orrery.kernels.gemm.tuned_tiles import Shape, Tuned, Tuner, tuned

TRIALS = 10
SMALL = (
    "kernels here differ only in a square tile, on three GPUs of one generation; the paper's baselines also leave out "
    "vector instructions and threads on processors"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The best device's gain."""
    setup = paper.setups["clients"]
    found = {name: on_device(setup, name) for name in setup.word("devices").split(", ")}
    gains = {name: each.shipped_s / each.tuned_s for name, each in found.items()}
    yield Prediction(
        claim="speedup",
        predicted=max(gains.values()),
        differs=SMALL,
        because=", ".join(
            f"{name} {gain:.2f} with tiles {found[name].tiles}, {found[name].num_tried} candidates in "
            f"{found[name].tuning_s:.0f} s"
            for name, gain in gains.items()
        ),
    )


def on_device(setup: Setup, name: str) -> Tuned:
    """The linear layers of one block, each shape once."""
    tuner = Tuner(
        tiles=candidates(),
        shipped_tile=int(setup.number("num_tile_side")),
        compile_s=setup.number("compile_s"),
        num_trials=TRIALS,
        dispatch_s=setup.number("call_s"),
        budget_s=setup.number("tuning_s"),
    )
    return tuned(shapes(setup), get_device(name), tuner)


def shapes(setup: Setup) -> tuple[Shape, ...]:
    """Rows, columns and depth of every linear layer of a block."""
    tokens, model = int(setup.number("input_tokens")), get_model(setup.word("model"))
    blocks = (*model.blocks, *model.encoder)
    return tuple(dict.fromkeys((tokens, x.out_features, x.in_features) for x in blocks[0].linears))


def candidates() -> tuple[int, ...]:
    """Sides of a tile, largest first: few threads take so long that a browser would not wait for them."""
    return tuple(range(LARGEST_TILE, 0, -1))
