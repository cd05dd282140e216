"""Flags that narrow a list of papers."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

FILTERS = (
    ("author", "NAME", "By this person: a name or part of one."),
    ("layer", "NAME", "Of this layer: serving, training, kernels, numerics, moe, …"),
    ("device", "NAME", "With a set-up on this device, or on one whose name begins so: a100."),
    ("technique", "NAME", "That this technique models, as orrery show techniques names it."),
    ("metric", "NAME", "With a claim on this metric: throughput_ratio, …"),
    ("kind", "NAME", "technique, system, measurement, theory, survey, model-release or benchmark-dataset."),
    ("fit", "NAME", "core, adjacent or catalogue."),
    ("verdict", "WORD", "With a claim that is reproduced, or 'not reproduced'; or none: nothing is modeled."),
    ("year", "YEARS", "Of this year, or of 2020..2024, 2023.. or ..2021."),
)
"""Name, placeholder and help of each; several names go by comma, and any of them will do."""


def filter_flags(function: F) -> F:
    """A flag for each filter."""
    for name, metavar, help in reversed(FILTERS):
        function = click.option(f"--{name}", default="", metavar=metavar, help=help)(function)
    return function
