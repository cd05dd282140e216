"""A number says its unit in its name: every float field of every dataclass ends in a unit word."""

import dataclasses
import inspect
import pkgutil
import types
import typing
from importlib import import_module

import pytest

import orrery
from orrery.base.units import UNIT_WORDS

WITHOUT_UNIT = {
    "Fact.value": "a fact of any dimension; its own name carries the unit",
    "Interval.low_80": "in the unit of the value that it surrounds",
    "Interval.high_80": "in the unit of the value that it surrounds",
    "Interval.low_95": "in the unit of the value that it surrounds",
    "Interval.high_95": "in the unit of the value that it surrounds",
    "MoE.skew": "the exponent of a power law",
}
"""Fields that carry no unit, and why."""


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
    return "float64" in str(hint) and "ndarray" in str(hint)


def float_fields():
    """``Class.field`` of every float field of every dataclass, named tuple and pydantic model."""
    for module in modules():
        for kind in vars(module).values():
            if not inspect.isclass(kind) or kind.__module__ != module.__name__:
                continue
            if not (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields") or hasattr(kind, "model_fields")):
                continue
            hints = inspect.get_annotations(kind, eval_str=True)
            yield from (f"{kind.__name__}.{name}" for name, hint in hints.items() if holds_floats(hint))


FIELDS = sorted(set(float_fields()))


@pytest.mark.parametrize("field", [f for f in FIELDS if f not in WITHOUT_UNIT])
def test_a_number_says_its_unit(field):
    assert field.rsplit("_", 1)[-1].rsplit(".", 1)[-1] in UNIT_WORDS, (
        f"{field} does not end in a unit; known: {', '.join(sorted(UNIT_WORDS))}"
    )


def test_the_exceptions_exist():
    assert set(FIELDS) >= WITHOUT_UNIT.keys(), sorted(WITHOUT_UNIT.keys() - set(FIELDS))
