"""A way to serve, as an answer states it: its name, and the settings of the design that it is."""

from collections.abc import Mapping
from typing import Any

from orrery.execution.layout import Layout
from orrery.planner.money import S_PER_HOUR
from orrery.web.address import query_of

Plain = Mapping[str, Any]

KEPT = (
    "model",
    "engine_version",
    "gpu_memory_utilization",
    "max_model_len",
    "max_num_seqs",
    "usd_per_hour",
    "electricity",
)
"""Settings of the question that hold for each of its designs."""

SPARE = 0.99
"""A plan that is used beyond this share of what it carries is estimated as a full loop, as the planner does."""


def named(one: Plain) -> str:
    """``h100-sxm tp4 fp8``; the cache's format where it is another one."""
    formats = one["formats"]
    kv = f", cache {formats['kv']}" if formats["kv"] != formats["weights"] else ""
    return f"{one['device']} {Layout(**one['layout'])} {formats['weights']}{kv}"


def design(answer: Plain, one: Plain) -> str:
    """The address of the design of a plan or a point of the front, one replica, at its own load."""
    traffic, layout, formats = answer["goal"]["traffic"], one["layout"], one["formats"]
    settings = {name: answer["settings"][name] for name in KEPT if name in answer["settings"]} | {
        "device": one["device"],
        **{way: n for way, n in layout.items() if n > 1 or way == "tp"},
        "weights": formats["weights"],
        "activations": formats["activations"],
        "kv": formats["kv"],
        "engine": one["engine"],
        "max_num_batched_tokens": one["max_num_batched_tokens"],
        "input_tokens": round(traffic["input_tokens"]),
        "output_tokens": max(1, round(traffic["output_tokens"])),
        **_load(one),
    }
    return f"/design?{query_of(settings)}"


def _load(one: Plain) -> dict[str, Any]:
    """The load of one replica: the arrivals it has to take, or as many requests as it holds."""
    replicas, highest = one.get("replicas", 1), one.get("highest_requests_per_s")
    if highest and one["requests_per_s"] < SPARE * highest:
        return {"rate": float(f"{one['requests_per_s'] / replicas:.6g}")}
    return {"concurrency": max(1, round(one["concurrency"] / replicas))}


def usd_per_million(answer: Plain, point: Plain) -> float | None:
    """Dollars for a million output tokens at a point of the front: the devices' price, without electricity."""
    usd_per_hour = answer["prices"].get(point["device"], {}).get("usd_per_hour")
    rate = point["output_tokens_per_s_per_device"]
    return usd_per_hour / S_PER_HOUR / rate * 1e6 if usd_per_hour is not None and rate > 0 else None
