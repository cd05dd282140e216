"""Timelines: a request's life, the stages of a pipeline, and the layers with the messages between them.

Only what the estimate knows is drawn: steps one after the other, operations of a layer one after the other.
"""

from collections.abc import Iterator

from orrery.drawing import Span, Track, timeline
from orrery.reports.ops import ops_of
from orrery.reports.words import format_value
from orrery.scenario.ask import Answer

LAYERS = 4
"""Layers that are drawn of a step."""

TOKENS = 24
"""Tokens of an answer that are drawn one by one."""


def life(answer: Answer) -> str:
    """A mean request: in front of the engine, its prompt, then its tokens."""
    e = answer.estimate
    entry_s = answer.question.deployment.engine.entry_s(answer.question.workload.input_tokens)
    request_s = min(entry_s, e.ttft_s)
    prompt_s = min(e.prefill_cost.time_s, e.ttft_s - request_s)
    wait_s = e.ttft_s - request_s - prompt_s
    first = [("front end", request_s), ("waiting and further steps", wait_s), ("step with the prompt", prompt_s)]
    tokens = min(TOKENS, max(0, round(answer.question.workload.output_tokens) - 1))
    spans = list(_after(0.0, first)) + list(_after(e.ttft_s, [("a token", e.tpot_s)] * tokens))
    says = (
        f"The first token after {format_value(e.ttft_s, 's')}, then one every "
        f"{format_value(e.tpot_s, 's')}; the whole takes "
        f"{format_value(e.latency_s, 's')}."
    )
    return timeline([Track("request", spans)], title="The beginning of a mean request", says=says)


def _after(start_s: float, lengths: list[tuple[str, float]]) -> Iterator[Span]:
    at = start_s
    for number, (kind, length_s) in enumerate(lengths):
        if length_s > 0:
            yield Span(at, at + length_s, kind, f"{kind} {number + 2}" if kind == "a token" else kind)
        at += length_s


def stages(answer: Answer) -> str:
    """Batches that pass through the stages of a pipeline; empty without one.

    Stage k of p holds its share of the layers; a batch enters when the fullest stage is free.
    """
    e, d = answer.estimate, answer.question.deployment
    pp, layers = d.layout.pp, d.model.num_layers
    if pp == 1:
        return ""
    whole_s = float(e.steps.ticks.done.time_s[e.steps.decode_entry])
    every_s = float(e.steps.ticks.stage_s[e.steps.decode_entry])
    shares = [(layers // pp + (stage < layers % pp)) / layers for stage in range(pp)]
    tracks: list[Track] = []
    for stage, share in enumerate(shares):
        begin_s = sum(shares[:stage]) * whole_s
        starts = [begin_s + batch * every_s for batch in range(2 * pp)]
        tracks.append(
            Track(
                f"stage {stage + 1}",
                [
                    Span(
                        s,
                        s + share * whole_s,
                        f"batch {batch % pp + 1}",
                        f"batch {batch % pp + 1}, token {batch // pp + 1}",
                    )
                    for batch, s in enumerate(starts)
                ],
            )
        )
    says = (
        f"{pp} batches follow each other; one enters every {format_value(every_s, 's')}, a token takes "
        f"{format_value(whole_s, 's')}."
    )
    return timeline(tracks, title="Decode steps in the pipeline", says=says)


def layers(answer: Answer) -> str:
    """A few mean layers of a decode step with their collectives; empty where nothing is sent inside a layer."""
    e, d = answer.estimate, answer.question.deployment
    ops = ops_of(e, "decode")
    sent = [op for op in ops if op.group == "network" and op.name not in ("hand over", "gather logits")]
    if not sent:
        return ""
    done = [op for op in ops if op.group not in ("network", "head") and op.name != "sampling"]
    compute, links, at = list[Span](), list[Span](), 0.0
    for layer in range(min(LAYERS, d.model.num_layers)):
        for op in (*done, *sent):
            length_s = op.time_s / d.model.num_layers
            track = links if op.group == "network" else compute
            track.append(Span(at, at + length_s, op.name, f"layer {layer + 1}, {op.name}"))
            at += length_s
    says = (
        f"Means over {d.model.num_layers} layers, each operation once a layer; the device waits while the links are "
        "busy (techniques that overlap them can be simulated)."
    )
    return timeline([Track("device", compute), Track("links", links)], title="Layers of a decode step", says=says)
