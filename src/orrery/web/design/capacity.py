"""Memory: what fills it, and what it leaves for contexts and sequences."""

from orrery.reports.report import Figure
from orrery.reports.serving_pictures import memory_figure
from orrery.reports.words import format_value
from orrery.scenario.ask import Answer


def figure(answer: Answer) -> Figure:
    """The fullest device by category, against its capacity."""
    return memory_figure([("each device", answer.estimate.memory)])


def left(answer: Answer) -> tuple[tuple[str, str], ...]:
    """Spare capacity, as (what, how much)."""
    e, w, d = answer.estimate, answer.question.workload, answer.question.deployment
    memory, dp = e.memory, d.layout.dp
    most = min(memory.sequences(w.input_tokens + w.output_tokens), float(memory.max_num_seqs)) * dp
    return (
        ("Longest context", _longest(memory.kv_capacity_tokens, d.model.max_context_tokens)),
        ("Most sequences at this length", f"{most:,.0f}, of {memory.max_num_seqs * dp:,} that the engine admits"),
        ("KV cache per token", f"{format_value(memory.cache.bytes_per_token, 'bytes')} on each device"),
        ("In flight at this load", f"{e.concurrency:,.3g} requests"),
        (
            "Filled at this load",
            f"{format_value(e.peak_memory_bytes, 'bytes')} of {format_value(memory.capacity_bytes, 'bytes')}",
        ),
    )


def _longest(room_tokens: float, own_tokens: int) -> str:
    """Describe the longest context of one sequence: what the model takes, or what there is room for."""
    if own_tokens and own_tokens <= room_tokens:
        room = "any number" if room_tokens == float("inf") else f"{room_tokens:,.0f}"
        return f"{own_tokens:,} tokens, all that the model takes (there is room for {room})"
    return "any" if room_tokens == float("inf") else f"{room_tokens:,.0f} tokens, all that there is room for"
