"""A number says its unit in its name: every float field of every dataclass ends in a unit word."""

import dataclasses
import inspect
import pkgutil
import types
import typing
from importlib import import_module

import pytest
from battery import over

import orrery
from orrery.base.units import UNIT_WORDS

WITHOUT_UNIT = {
    "Fact.value": "a fact of any dimension; its own name carries the unit",
    "Row.value": "a fact of any dimension; its own name carries the unit",
    "Reason.value": "a step of an explanation; its own name carries the unit",
    "Circuit.dsps": "multiplier blocks, counted: a part of one that forms several products",
    "DspCount.slices": "likewise",
    "Rotation.base": "a pure number, the base of a power",
    "Interval.low_80": "in the unit of the value that it surrounds",
    "Interval.high_80": "in the unit of the value that it surrounds",
    "Interval.low_95": "in the unit of the value that it surrounds",
    "Interval.high_95": "in the unit of the value that it surrounds",
    "Infeasible.need": "in the unit that the object names",
    "Infeasible.have": "in the unit that the object names",
    "Number.value": "in the unit that the object names",
    "Price.low": "in the unit of the price that they surround",
    "Price.high": "in the unit of the price that they surround",
    **dict.fromkeys(("SloCrossing.at", "Parameter.low", "Parameter.high"), "of a sweep: in the unit of what varies"),
    "Setting.least": "a bound of a setting, in the setting's unit",
    "Setting.most": "a bound of a setting, in the setting's unit",
    "FleetAnswer.seconds": "a key of the command contract",
    "FleetRun.frames": "a table whose columns are named in FRAME",
    "FleetRun.gap_counts": "a histogram of counts",
    "FleetRun.paid": "replicas, counted",
    "FleetTraffic.curve": "parts of the mean rate",
    "HpaKnobs.up_replicas": "replicas, counted",
    "RateCurve.bursts_per_day": "bursts, counted",
    "Tenant.priority_rank": "an order: lower goes first",
    "HpaKnobs.target": "in the unit of the metric that a knob names",
    "PlanAnswer.seconds": "a key of the command contract",
    **dict.fromkeys(
        (
            "CounterKnobs.learning_rate",
            "DescentKnobs.learning_rate",
            "EmbeddingKnobs.learning_rate",
            "PerceptronKnobs.learning_rate",
        ),
        "Adam's, of numbers that are scaled to one",
    ),
    **dict.fromkeys(("CounterLineKnobs.ridge", "ScoreLineKnobs.ridge"), "of features that are scaled to one"),
    "TrainPlanAnswer.seconds": "a key of the command contract",
    **dict.fromkeys(
        ("Game.matrices", "Game.offsets", "Game.solution"), "payoffs and moves of a game, in units of its own"
    ),
    "Message.received": "a vector in the unit of what was sent",
    **dict.fromkeys(
        ("Program.cost", "Program.matrix", "Program.most", "Program.row_high", "Program.row_low"),
        "of a linear program, in the units of its rows and columns",
    ),
    "Mixture.means": "points in the unit of the noise, which is one",
    "MoE.skew": "the exponent of a power law",
    "Candidate.root_s2_per_bytes": "seconds squared per byte: its root times the root of a size is a time",
    "Prepared.knobs": "a row a technique, each knob named in its KNOBS",
    "Popularity.exponent": "the exponent of a power law",
    **dict.fromkeys(
        ("StepLaw.concave_power", "StepLaw.matrix_weight", "StepLaw.memory_weight"),
        "exponent and weights of shares of two roofs",
    ),
    "Ready.machine": "a kernel's row of roofs, each named where it is filled in",
    "Ready.constants": "a kernel's row of constants, each named in its CONSTANTS",
    "Requests.priority": "a rank: lower goes first",
    "Row.priority": "a rank: lower goes first",
    "Trace.priority": "a rank: lower goes first",
    "Claim.low": "in the unit that the claim names",
    "Claim.high": "in the unit that the claim names",
    "Prediction.predicted": "in the unit of the claim",
    "ClaimResult.predicted": "in the unit of the claim",
    "Scored.predicted": "in the unit of the claim",
    "Solution.x": "of a linear program, in the units of its columns",
    "Solution.bound": "of a linear program, in the units of its cost",
    "SparseRows.value": "of a linear program, in the units of its rows and columns",
    "Number.low": "in the unit that the number names",
    "Number.high": "in the unit that the number names",
    "Figure.value": "in the unit that the figure names",
    "MicroRow.value": "in the unit that the row names",
    "MicroRow.known_value": "in the unit that the row names",
    "NumericClaim.low": "in the unit that the claim names",
    "NumericClaim.high": "in the unit that the claim names",
    "Quantity.low": "in the unit that the quantity names",
    "Quantity.high": "in the unit that the quantity names",
    "Alternative.score": "a quality in the measure of whoever scored it",
    "ScorePart.value": "a share of a score, which has no unit",
    "Point.predicted": "in the unit of the claim",
    "Point.value": "in the unit that the input's name carries",
    "Reading.neutral": "in the unit of the claim",
    **dict.fromkeys(
        ("Law.n", "Law.alpha", "Law.d", "Law.beta", "Law.epsilon", "Law.gamma", "Law.delta", "Law.nu"),
        "a coefficient, in whatever unit makes a law come out in nats",
    ),
    "Law.num_flops_per_bit": "operations a bit: of a law, not of a device",
    "Gamma.burstiness": "the shape of a distribution; the word of vLLM's load generator",
    "Simulated.gap_counts": "a histogram of counts",
    "Simulated.gap_squares_s2": "a sum of seconds squared",
    "Simulated.timeline": "a table whose columns are named in TIMELINE",
    "Simulated.step_log": "a table whose columns are named in STEP",
    "SimulatedAnswer.seconds": "as in PlanAnswer",
    "Kind.moves": "elements moved per element that enters",
    "Kind.moves_32bit": "elements moved per element that enters",
    "CrestRow.crest_factor": "largest over root mean square, by its name in signal processing",
    "Result.crest_factor": "largest over root mean square, by its name in signal processing",
    "Fit.held_out_loss": "of a toy network, in its own measure",
    "Task.least_loss": "of a toy network, in its own measure",
    "Plan.learning_rate": "a step a gradient, by its name in the field",
    "PowerExponent.exponent": "of a power",
    "PowerGrid.exponent": "of a power",
    "PowerPoints.exponent": "of a power",
    "Recipe.slope_order": "of a power that stands in for a staircase",
    "RoundedKnobs.slope_order": "of a power that stands in for a staircase",
    "Sloped.order": "of a power that stands in for a staircase",
    "Quantised.outer": "a divisor of scales",
    "Speed.scales_per_element": "scales, counted",
    "Survey.largest": "a magnitude of the tensor's own numbers",
    "Survey.norm": "a magnitude of the tensor's own numbers",
    **dict.fromkeys(
        (
            "Axis.low",
            "Axis.high",
            "Bar.mark",
            "Pairs.found",
            "Pairs.predicted",
            "Part.value",
            "Reading.value",
            "Reading.low",
            "Reading.high",
            "Reading.other",
            "Scale.low",
            "Scale.high",
            "SensitivityBar.low",
            "SensitivityBar.high",
        ),
        "of a chart: in the unit of the axis",
    ),
    **dict.fromkeys(("Point.x", "Point.y"), "of a chart: in the units of its axes"),
    **dict.fromkeys(("Op.ops_per_byte", "Op.ops_per_s", "Roof.ops_per_s"), "operations of any format, counted"),
}
"""Fields that carry no unit, and why."""

PURE_NUMBERS = frozenset({"Ladder", "Grid", "ErrorReport", "ErrorSums", "ElementFacts", "Pooled"})
"""Numbers of a format or a tensor: whatever the tensor's unit is."""

OF_ANY_METRIC = frozenset(
    {
        "Assigned",
        "Band",
        "BreakEven",
        "CauseFit",
        "Cell",
        "Compared",
        "Constant",
        "ConstantUpdate",
        "ClaimEffect",
        "DeploymentEffect",
        "DeviceResult",
        "Difference",
        "Fitted",
        "Found",
        "LeftOut",
        "Metric",
        "NextRun",
        "Posterior",
        "Predicted",
        "Scores",
        "Trained",
        "Value",
    }
)
"""Statistics: of metrics or constants that the objects name, in the unit of each, or of none (logarithms, scores)."""

TABLES = frozenset({"Surface", "World", "Assembled"})
"""What compiled loops run on: tables whose columns are named, and explained, beside them."""

COUNTS = frozenset(
    {
        "count",
        "concurrency",
        "batch",
        "steps",
        "slots",
        "decoding",
        "sequences",
        "requests",
        "elements",
        "rows",
        "entries",
        "parameters",
        "casts",
        "flight",
    }
)
"""Words for things that are counted; a mean of counts is a float."""

SHARES = frozenset({"share"})
"""Words for parts of one."""


def says_its_unit(name):
    """A unit word at the end, ``a_per_b`` by its ``a``, ``…_std`` by what it is the deviation of; or a count."""
    whole = name.split("_per_")[0].removesuffix("_std")
    last = whole.rsplit("_", 1)[-1]
    is_rate = name.endswith("_rate_per_s")
    return last in UNIT_WORDS or is_rate or whole.startswith("num_") or last in COUNTS | SHARES


def modules():
    """Every module of the package, imported."""
    for found in pkgutil.walk_packages(orrery.__path__, "orrery."):
        if not found.name.endswith("__main__"):
            yield import_module(found.name)


def holds_floats(hint):
    """Whether an annotation is a float, a float array, or one of them or something else."""
    if hint is float:
        return True
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return any(holds_floats(part) for part in typing.get_args(hint))
    return str(hint).startswith("numpy.ndarray") and "float64" in str(hint)


def float_fields():
    """``Class.field`` of every float field of every dataclass, named tuple and pydantic model."""
    for module in modules():
        for kind in vars(module).values():
            if not inspect.isclass(kind) or kind.__module__ != module.__name__ or kind.__name__.startswith("_"):
                continue
            if kind.__name__ in TABLES | PURE_NUMBERS | OF_ANY_METRIC:
                continue
            if not (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields") or hasattr(kind, "model_fields")):
                continue
            hints = inspect.get_annotations(kind, eval_str=True)
            yield from (f"{kind.__name__}.{name}" for name, hint in hints.items() if holds_floats(hint))


FIELDS = sorted(set(float_fields()))


@over([f for f in FIELDS if f not in WITHOUT_UNIT])
def test_a_number_says_its_unit(field):
    assert says_its_unit(field.split(".")[1]), f"{field} does not end in a unit; known: {', '.join(sorted(UNIT_WORDS))}"


@pytest.mark.parametrize("name", ["bandwidth", "time_ms", "size", "latency_seconds", "power_kw", "rate"])
def test_a_bare_name_does_not_pass(name):
    assert not says_its_unit(name)


def test_the_exceptions_exist():
    assert set(FIELDS) >= WITHOUT_UNIT.keys(), sorted(WITHOUT_UNIT.keys() - set(FIELDS))
