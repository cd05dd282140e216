"""Traffic as a scenario states it: a trace, or lengths with a rate."""

from orrery.base.errors import ScenarioError
from orrery.catalog.traces import load_trace, stats
from orrery.scenario.images import prompt_tokens
from orrery.scenario.schema import Scenario
from orrery.serving.workload import Traffic


def traffic_of(scenario: Scenario) -> tuple[Traffic, tuple[str, ...]]:
    """From a trace, or from lengths and a rate; lengths or a rate beside a trace override its own."""
    if scenario.trace is None:
        return _stated(scenario), ()
    trace = load_trace(scenario.trace, scenario.seed or 0)
    found = stats(trace)
    text = (
        f"trace {trace.name}: {found.num_requests} requests, {found.request_rate_per_s:.3g}/s, "
        f"mean {found.input_mean_tokens:.0f} in and {found.output_mean_tokens:.0f} out, "
        f"longest {found.longest_tokens}; its means are used; `simulate` and `plan --simulate` replay it"
    )
    if scenario.rate:
        text += f"; at {scenario.rate:g} requests/s, as asked"
    given = scenario.input_tokens or scenario.output_tokens
    traffic = Traffic(
        input_tokens=float(scenario.input_tokens or found.input_mean_tokens),
        output_tokens=float(scenario.output_tokens or found.output_mean_tokens),
        request_rate_per_s=scenario.rate or found.request_rate_per_s,
        input_tokens_std=found.input_std_tokens,
        output_tokens_std=found.output_std_tokens,
        longest_tokens=0.0 if given else float(found.longest_tokens),
    )
    return traffic, (*trace.notes, text)


def _stated(scenario: Scenario) -> Traffic:
    if scenario.input_tokens is None or scenario.output_tokens is None:
        raise ScenarioError('traffic: is missing; write trace = "chat", or rate with input_tokens and output_tokens.')
    return Traffic(
        input_tokens=float((prompt_tokens(scenario) if scenario.image_count else scenario.input_tokens) or 0),
        output_tokens=float(scenario.output_tokens),
        request_rate_per_s=scenario.rate or 0.0,
        input_tokens_std=scenario.input_tokens_std or 0.0,
        output_tokens_std=scenario.output_tokens_std or 0.0,
    )
