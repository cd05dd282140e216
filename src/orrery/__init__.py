"""Orrery: a working model of AI compute.

>>> import orrery
>>> answer = orrery.estimate(model="llama-3.1-8b", device="h100-sxm", input_tokens=512, output_tokens=128, batch=8)
>>> sorted(answer.to_json())[:2]
['bound_by', 'concurrency']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orrery.base.errors import OrreryError as OrreryError
    from orrery.calibrate.device.calibrate import calibrate_device as calibrate_device
    from orrery.calibrate.kernel import kernel as kernel
    from orrery.calibrate.runs.calibrate import calibrate_runs as calibrate_runs
    from orrery.catalog.devices import get_device as get_device
    from orrery.catalog.models import get_model as get_model
    from orrery.catalog.trace_requests import fit_trace as fit_trace
    from orrery.catalog.traces import load_trace as load_trace
    from orrery.evidence.check import check as check
    from orrery.numerics.quantise import round_trip as round_trip
    from orrery.numerics.registry import get_format as get_format
    from orrery.scenario.ask import plan as plan
    from orrery.scenario.bits import bits as bits
    from orrery.scenario.cache_size import cache_size as cache_size
    from orrery.scenario.capacity import find_capacity as find_capacity
    from orrery.scenario.cold_start import cold_start as cold_start
    from orrery.scenario.compare import compare as compare
    from orrery.scenario.compare_formats import compare_formats as compare_formats
    from orrery.scenario.disaggregate import plan_disaggregated as plan_disaggregated
    from orrery.scenario.estimates import estimate as estimate
    from orrery.scenario.experiment_asked import experiment as experiment
    from orrery.scenario.file import load_scenario as load_scenario
    from orrery.scenario.file import save_scenario as save_scenario
    from orrery.scenario.fleet.ask import simulate_fleet as simulate_fleet
    from orrery.scenario.quantize import quantize as quantize
    from orrery.scenario.rl import train_rl as train_rl
    from orrery.scenario.rl_placement import train_rl_placement as train_rl_placement
    from orrery.scenario.rl_plan import train_rl_plan as train_rl_plan
    from orrery.scenario.scaling import scaling as scaling
    from orrery.scenario.schema import Scenario as Scenario
    from orrery.scenario.search.ask import search as search
    from orrery.scenario.simulations import simulate as simulate
    from orrery.scenario.split import split as split
    from orrery.scenario.sweep import sweep as sweep
    from orrery.scenario.train import train as train
    from orrery.scenario.train_graph import train_graph as train_graph
    from orrery.scenario.train_plan import train_plan as train_plan
    from orrery.scenario.what_if import what_if as what_if

__version__ = "0.1.0"

_HOME = {
    "OrreryError": "orrery.base.errors",
    "Scenario": "orrery.scenario.schema",
    "bits": "orrery.scenario.bits",
    "cache_size": "orrery.scenario.cache_size",
    "calibrate_device": "orrery.calibrate.device.calibrate",
    "calibrate_runs": "orrery.calibrate.runs.calibrate",
    "check": "orrery.evidence.check",
    "cold_start": "orrery.scenario.cold_start",
    "compare": "orrery.scenario.compare",
    "compare_formats": "orrery.scenario.compare_formats",
    "estimate": "orrery.scenario.estimates",
    "experiment": "orrery.scenario.experiment_asked",
    "find_capacity": "orrery.scenario.capacity",
    "fit_trace": "orrery.catalog.trace_requests",
    "get_device": "orrery.catalog.devices",
    "get_format": "orrery.numerics.registry",
    "get_model": "orrery.catalog.models",
    "kernel": "orrery.calibrate.kernel",
    "load_scenario": "orrery.scenario.file",
    "load_trace": "orrery.catalog.traces",
    "plan": "orrery.scenario.ask",
    "plan_disaggregated": "orrery.scenario.disaggregate",
    "quantize": "orrery.scenario.quantize",
    "round_trip": "orrery.numerics.quantise",
    "save_scenario": "orrery.scenario.file",
    "scaling": "orrery.scenario.scaling",
    "search": "orrery.scenario.search.ask",
    "simulate": "orrery.scenario.simulations",
    "simulate_fleet": "orrery.scenario.fleet.ask",
    "split": "orrery.scenario.split",
    "sweep": "orrery.scenario.sweep",
    "train": "orrery.scenario.train",
    "train_graph": "orrery.scenario.train_graph",
    "train_plan": "orrery.scenario.train_plan",
    "train_rl": "orrery.scenario.rl",
    "train_rl_placement": "orrery.scenario.rl_placement",
    "train_rl_plan": "orrery.scenario.rl_plan",
    "what_if": "orrery.scenario.what_if",
}
"""Public name -> where it lives; nothing is imported before it is asked for."""

__all__ = [
    "OrreryError",
    "Scenario",
    "__version__",
    "bits",
    "cache_size",
    "calibrate_device",
    "calibrate_runs",
    "check",
    "cold_start",
    "compare",
    "compare_formats",
    "estimate",
    "experiment",
    "find_capacity",
    "fit_trace",
    "get_device",
    "get_format",
    "get_model",
    "kernel",
    "load_scenario",
    "load_trace",
    "plan",
    "plan_disaggregated",
    "quantize",
    "round_trip",
    "save_scenario",
    "scaling",
    "search",
    "simulate",
    "simulate_fleet",
    "split",
    "sweep",
    "train",
    "train_plan",
    "train_rl",
    "train_rl_placement",
    "train_rl_plan",
    "what_if",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'orrery' has no attribute {name!r}")
    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
