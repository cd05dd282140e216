"""A job of reinforcement learning with the settings that a test looks at."""

from dataclasses import MISSING, fields
from types import SimpleNamespace

from orrery.rl.job import RlJob

DEFAULTS = {f.name: f.default for f in fields(RlJob) if f.default is not MISSING}


def job(**given):
    """The settings that a test looks at, the others as a job has them."""
    base = DEFAULTS | {"replicas": 1, "num_prompts": 1, "group": 1, "prompt": None, "response": None} | given
    return SimpleNamespace(**base, num_samples=base["num_prompts"] * base["group"])
