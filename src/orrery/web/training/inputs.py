"""From the form to the settings of a training job."""

from collections.abc import Mapping
from typing import Any

from orrery.web.address import Query, read_by, settings_of

JOB: Mapping[str, Any] = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "devices": "8",
    "global_batch": "64",
    "micro_batch": "1",
    "seq_len": "4096",
    "precision": "bf16",
}
"""Defaults of a job that was not asked for in full; they come to stand in the address."""

LAYOUT: Mapping[str, Any] = {"tp": "2", "sharding": "zero1"}
"""Where nothing at all was asked."""


TRAINED = read_by({"train"})
"""Settings that a training job reads."""


def training_settings(query: Query) -> dict[str, Any]:
    """The settings of a training job, whole; those of serving are left out."""
    found = {k: v for k, v in settings_of(query).items() if k in TRAINED}
    return {**JOB, **found} if found else {**JOB, **LAYOUT}
