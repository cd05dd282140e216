"""Sentences on the inputs and results of serving."""

from orrery.execution.layout import Deployment, Formats, Layout
from orrery.planner.goal import Goal
from orrery.reports.words import counted, format_value, listed
from orrery.scenario.ask import Answer
from orrery.scenario.schema import Scenario
from orrery.serving.workload import Traffic, Workload

LATENCY = {"ttft": "time to first token", "tpot": "time per output token", "e2el": "end-to-end latency"}

WAYS = (
    ("tp", "tensor"),
    ("pp", "pipeline"),
    ("dp", "data"),
    ("ep", "expert"),
    ("etp", "expert tensor"),
    ("cp", "context"),
)


def machines(num_devices: int, device: str) -> str:
    """``2 x h100-sxm``."""
    return f"{num_devices:,} x {device}"


def cut(layout: Layout) -> str:
    """The layout: ``tensor parallel 2``; ``whole on each device``."""
    ways = [f"{name} parallel {getattr(layout, way)}" for way, name in WAYS if getattr(layout, way) > 1]
    return listed(ways) if ways else "whole on one device"


def formats_said(formats: Formats) -> str:
    """``FP8 weights, FP8 cache``."""
    return f"{formats.weights.upper()} weights, {formats.kv.upper()} cache"


def described(deployment: Deployment, replicas: int = 1) -> str:
    """A deployment in a few words."""
    times = f"{replicas} replicas, each " if replicas > 1 else ""
    return f"{times}{cut(deployment.layout)}, {formats_said(deployment.formats)}, {deployment.engine.name}"


def lengths(traffic: Traffic | Workload) -> str:
    """``prompts of 1,024 tokens and answers of 256``."""
    return f"prompts of {traffic.input_tokens:,.0f} tokens and answers of {traffic.output_tokens:,.0f} (means)"


def objectives(goal: Goal) -> str:
    """``a time to first token of at most 1 s, …``; empty where none was set."""
    return listed(
        [
            f"a {LATENCY[n.removesuffix('_s')]} of at most {format_value(limit, 's')}"
            for n, limit in goal.objectives.limits()
        ]
    )


def plan_question(goal: Goal, model: str, devices: str) -> str:
    """The question of a plan."""
    t = goal.traffic
    load = (
        f"{format_value(t.request_rate_per_s, 'requests_per_s')} with"
        if t.request_rate_per_s
        else "as many requests as can be, with"
    )
    limits = objectives(goal)
    within = f", within {limits}" if limits else ""
    best = "the lowest cost per hour" if goal.best == "cost" else "the highest output tokens/s per device"
    return (
        f"How should {model} be served on at most {counted(goal.max_devices, 'device')} ({devices}) for {load} "
        f"{lengths(t)}{within}? The best plan is the one with {best}."
    )


def estimate_question(answer: Answer) -> str:
    """The question of an estimate."""
    d, w = answer.question.deployment, answer.question.workload
    load = {
        "static": f"one batch of {w.batch_size:,.0f} equal requests",
        "closed": f"{counted(w.concurrency, 'request')} always in flight",
        "open": f"{format_value(w.request_rate_per_s, 'requests_per_s')} arriving at random",
        "offline": "all requests at once",
    }[w.mode]
    where = machines(answer.estimate.num_devices, d.cluster.device.name)
    return f"How does {d.model.name} run on {where} ({described(d)}) with {load}: {lengths(w)}?"


def load_said(scenario: Scenario) -> str:
    """The load of a simulated run, as the scenario states it."""
    if scenario.concurrency is not None:
        load = f"{counted(scenario.concurrency, 'request')} always in flight"
    elif scenario.rate is not None:
        load = f"{format_value(scenario.rate, 'requests_per_s')} arriving"
    elif scenario.trace is not None:
        load = "requests as they arrived"
    else:
        load = "all requests at once"
    if scenario.trace is not None:
        return f"{load}, replaying the trace {scenario.trace}"
    sizes = (("prompts", scenario.input_tokens), ("answers", scenario.output_tokens))
    parts = [f"{name} of {value:,} tokens" for name, value in sizes if value is not None]
    return f"{load}, with {listed(parts)} (means)" if parts else load
