"""The kinds of answer that a report is made from, and how they are told apart."""

from collections.abc import Mapping
from typing import Literal

Kind = Literal["plan", "estimate", "simulate", "capacity", "sweep", "train", "train-plan"]

COMMANDS: Mapping[Kind, tuple[str, ...]] = {
    "plan": ("plan",),
    "estimate": ("estimate",),
    "simulate": ("simulate",),
    "capacity": ("simulate", "--find-capacity"),
    "sweep": ("simulate",),
    "train": ("train",),
    "train-plan": ("train", "--plan"),
}
"""Command of each kind."""

SIGNS: Mapping[Kind, tuple[str, ...]] = {
    "sweep": ("runs", "num_runs"),
    "capacity": ("request_throughput", "capacity"),
    "simulate": ("request_throughput",),
    "plan": ("plans", "goal"),
    "train-plan": ("plans", "job"),
    "train": ("step_time_s", "job"),
    "estimate": ("ttft_s", "tpot_s", "deployment"),
}
"""Keys that only such an answer has, looked for in this order."""
