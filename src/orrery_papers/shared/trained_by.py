"""Training set-ups of papers, answered by the same call as ``orrery train``."""

import re
from typing import Any

from orrery.base.errors import FactError
from orrery.evidence.paper_file import Setup
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.train import TrainAnswer, train
from orrery_papers.shared.described import model_word

WORDS = {
    "device": "device",
    "framework": "engine",
    "precision": "weights_format",
    "sharding": "sharding",
    "recompute": "recompute",
    "schedule": "schedule",
}
"""Settings that are words, and the lines of a set-up that state them."""

NUMBERS = {
    "devices": "num_devices",
    "devices_per_node": "num_devices_per_node",
    "seq_len": "sequence_tokens",
    "global_batch": "num_global_batch",
    "micro_batch": "num_micro_batch",
}
"""Settings that are whole numbers, likewise."""


def trained(**settings: Any) -> TrainAnswer:
    """The answer of ``orrery train`` with these settings; FactError where the set-up does not fit its devices."""
    found = train(**settings)
    if not isinstance(found, TrainAnswer):
        raise FactError(f"set-up: {found}; state one that fits.")
    return found


def settings_of(setup: Setup, **given: Any) -> dict[str, Any]:
    """Settings of ``orrery train`` that a set-up states; what is given stands in place of its lines.

    A node's link is ``link_bytes_per_s``; degrees are written "tp8 pp64", and devices that are left over become data
    parallelism. A setting that is given as None is left out.
    """
    found: dict[str, Any] = {name: value for name, line in WORDS.items() if (value := setup.word(line))}
    found |= {name: int(value) for name, line in NUMBERS.items() if (value := setup.number(line))}
    found |= {name: int(value) for name, value in re.findall(r"([a-z]+)(\d+)", setup.word("layout"))}
    if link := setup.number("link_bytes_per_s"):
        found["node_link_bytes_per_s"] = link
    if "model" not in given:
        found["model"] = model_word(setup)
    found["sequence_parallel"] = setup.word("sequence_parallelism") == "yes"
    return {name: value for name, value in (found | given).items() if value is not None}


def trained_setup(setup: Setup, **given: Any) -> TrainAnswer:
    """The set-up's own job, where it fits."""
    return trained(**settings_of(setup, **given))


def fits(setup: Setup, **given: Any) -> bool:
    """Whether the set-up's job fits its devices."""
    return not isinstance(train(**settings_of(setup, **given)), InfeasibleAnswer)
