"""Rates of failures as operators published them."""

from collections.abc import Mapping
from functools import cache
from math import log
from pathlib import Path

from orrery.base.sources import Fact, read_facts

FILE = Path(__file__).parent / "facts" / "faults.toml"

PUBLISHED = "published"
"""The name by which a user asks for these rates."""


@cache
def fault_facts() -> Mapping[str, Fact]:
    """Return every count and length with its source."""
    return read_facts(FILE)[0]


@cache
def published_means_s() -> Mapping[str, float]:
    """Return mean times between failures (s), by the key of a fleet's faults.

    Of n parts watched for t seconds with k failures: n t / k. Software's failures are left out: they are of training.
    A spot replica of which a share f is interrupted within t seconds has the mean t / -ln(1 - f).
    """
    value = {name: float(fact.value) for name, fact in fault_facts().items()}
    device_s = value["num_devices"] * value["length_s"]
    return {
        "device_mtbf_s": device_s / value["num_device_interruptions"],
        "node_mtbf_s": device_s / value["num_devices_per_node"] / value["num_node_interruptions"],
        "link_mtbf_s": device_s / value["num_link_interruptions"],
        "spot_mtbi_s": value["spot_window_s"] / -log(1.0 - value["spot_interrupted_frac"]),
    }
