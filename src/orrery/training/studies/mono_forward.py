"""Four learning rules really trained, with early stopping and without: accuracy, passes, time, energy and memory."""

from dataclasses import dataclass, replace
from math import ceil
from types import ModuleType

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, counter, numbers, whole
from orrery.base.knobs import NoKnobs
from orrery.training.small import backpropagation, cascaded_forward, forward_forward, mono_forward
from orrery.training.small.data import Dataset, clusters
from orrery.training.small.learning import Settings
from orrery.training.small.points import points_of
from orrery.training.small.pricing import mean, price
from orrery.training.small.techniques import backpropagation as backpropagation_work
from orrery.training.small.techniques import cascaded_forward as cascaded_forward_work
from orrery.training.small.techniques import forward_forward as forward_forward_work
from orrery.training.small.techniques import mono_forward as mono_forward_work
from orrery.training.small.work import Sizes as Widths

RULES: dict[str, tuple[ModuleType, ModuleType, bool]] = {
    "backpropagation": (backpropagation, backpropagation_work, False),
    "mono-forward": (mono_forward, mono_forward_work, True),
    "cascaded-forward": (cascaded_forward, cascaded_forward_work, True),
    "forward-forward": (forward_forward, forward_forward_work, False),
}
"""Rule -> how it trains, what a step of it computes, and whether its layers learn in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Comma-separated widths of the hidden layers, points of a batch, and passes that a layer may wait to improve.

    What is priced is what is trained, unless ``priced`` (points:inputs:classes), ``priced_widths``, ``priced_batch`` or
    ``priced_passes`` say that the run on the device is larger. A loader takes ``loader_s`` for a point, and the
    process holds ``context_bytes``.
    """

    widths: str = "48,48"
    batch: int = 64
    patience: int = 4
    points: int = 800
    priced: str = ""
    priced_widths: str = ""
    priced_batch: int = 0
    priced_passes: str = ""
    loader_s: float = 0.0
    context_bytes: float = 0.0


def run(request: Run) -> tuple[Row, ...]:
    """A row a rule, stopped early and not."""
    sizes: Sizes = request.sizes
    hidden = tuple(whole("widths", int(n), most=1024) for n in numbers("widths", sizes.widths, least=1))
    count = whole("points", sizes.points, least=64, most=20_000)
    data = points_of(request.data, request.seed) if request.data else clusters(count=count, seed=request.seed)
    plan = Settings(
        hidden=hidden,
        batch=whole("batch", sizes.batch, most=count),
        most_passes=request.steps,
        patience_passes=whole("patience", sizes.patience, most=10_000),
        seed=request.seed,
    )
    tick = counter(request.progress, 2 * len(RULES))
    rows = list[Row]()
    for stops in (True, False):
        used = plan if stops else replace(plan, patience_passes=request.steps + 1)
        for name in RULES:
            rows.append(_row(name, data, used, stops, request))
            tick()
    return tuple(rows)


def _row(name: str, data: Dataset, plan: Settings, stops: bool, request: Run) -> Row:
    train, work, in_turn = RULES[name]
    found = train.train(data, plan)
    row: dict[str, str | float | int | bool] = {
        "rule": name,
        "stops_early": stops,
        "accuracy_frac": found.accuracy_frac,
        "passes": found.passes,
    }
    if request.device is None:
        return row
    return row | _priced(data, plan, found.passes, work, in_turn, request)


def _priced(
    data: Dataset, plan: Settings, passes: float, work: ModuleType, in_turn: bool, request: Run
) -> dict[str, float]:
    """Time, energy and memory of the whole run on the device: as it was trained, or as large as the sizes say."""
    sizes: Sizes = request.sizes
    points, inputs, classes = _priced_points(sizes, data)
    wide = sizes.priced_widths or ",".join(map(str, plan.hidden))
    hidden = tuple(whole("priced_widths", int(n), most=65536) for n in numbers("priced_widths", wide))
    batch = whole("priced_batch", sizes.priced_batch or plan.batch, most=1_000_000)
    widths = Widths(inputs=inputs, hidden=hidden, num_classes=classes, batch=batch)
    if min(sizes.loader_s, sizes.context_bytes) < 0.0:
        raise ScenarioError("set: loader_s and context_bytes; write numbers from 0.")
    units = range(len(widths.hidden)) if in_turn else range(1)
    one = mean(
        [price(work.rule(widths, unit, NoKnobs()), request.device, host_s=batch * sizes.loader_s) for unit in units]
    )
    counted = numbers("priced_passes", sizes.priced_passes)[0] if sizes.priced_passes else passes
    steps = counted * ceil(points / batch)
    return {
        "time_s": one.time_s * steps,
        "energy_j": one.energy_j * steps,
        "memory_bytes": sizes.context_bytes + one.state_bytes + one.activation_bytes,
    }


def _priced_points(sizes: Sizes, data: Dataset) -> tuple[int, int, int]:
    """Points of a pass, features of a point, and classes."""
    if not sizes.priced:
        return len(data.train.labels), data.train.rows.shape[1], data.num_classes
    try:
        points, inputs, classes = map(int, sizes.priced.split(":"))
    except ValueError:
        raise ScenarioError(
            f"set: priced = {sizes.priced!r}; write points:inputs:classes, such as 50000:784:10."
        ) from None
    return (
        whole("priced", points, most=1_000_000_000),
        whole("priced", inputs, most=1_000_000),
        whole("priced", classes, least=2, most=1_000_000),
    )


EXPERIMENT = Experiment(
    name="mono-forward",
    question="Do rules that train layer by layer learn as well as backpropagation, and what do they save?",
    run=run,
    num_steps=40,
    claims=("beyond-backprop-mono-forward",),
    sizes=Sizes,
    reads=("data", "device"),
    keys=("rule", "stops_early"),
)
