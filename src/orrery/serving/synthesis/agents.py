"""Agents: a task, then calls of tools whose results lengthen the context, and a last answer."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orrery.engine.streams import stream
from orrery.serving.requests import Requests
from orrery.serving.synthesis.growing import Sharing, Turns, filled, grown, pauses, turn_numbers
from orrery.serving.synthesis.lengths import Length, draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Agents:
    """Loop of an agent: n tool calls make n + 1 requests, each but the last answered by a call."""

    num_calls: float = 8.0  # mean tool calls a task
    calls_law: str = "geometric"  # of the requests, or "constant"
    tool_s: float = 1.0  # mean time that a tool takes
    tool_cv_ratio: float = 1.0  # its spread over its mean, for the lognormal
    tool_law: str = "lognormal"
    system_tokens: int = 2000  # instructions and descriptions of the tools, the same for all
    task: Length = field(default_factory=lambda: Length(mean_tokens=500.0, std_tokens=500.0))
    result: Length = field(default_factory=lambda: Length(mean_tokens=800.0, std_tokens=1200.0))
    call: Length = field(default_factory=lambda: Length(mean_tokens=100.0, std_tokens=80.0))
    answer: Length = field(default_factory=lambda: Length(mean_tokens=400.0, std_tokens=300.0))
    context_tokens: int = 0  # a task ends before it outgrows this; 0 = no limit
    block_tokens: int = 16  # of the prefix cache


def agent_loops(
    count: int, rate_per_s: float, seed: int = 0, traffic: Agents | None = None, law: str = "poisson", **knobs: Any
) -> Requests:
    """``count`` requests of agents whose tasks begin by an arrival law, such that requests come at ``rate_per_s``.

    The default lengths are assumed, round numbers of a coding agent; measure your own.
    """
    like = traffic or Agents()
    sharing = Sharing(
        system_tokens=like.system_tokens, context_tokens=like.context_tokens, block_tokens=like.block_tokens
    )

    def make(requested: int) -> Turns:
        turn = turn_numbers(requested + 1, like.num_calls + 1.0, like.calls_law, seed)
        is_last, turn = turn[1:] == 0, turn[:-1]
        tasks = draw(like.task, requested, stream(seed, "lengths/task"))
        results = draw(like.result, requested, stream(seed, "lengths/input"))
        calls = draw(like.call, requested, stream(seed, "lengths/output"))
        answers = draw(like.answer, requested, stream(seed, "lengths/answer"))
        return Turns(
            turn=turn,
            new_tokens=np.where(turn == 0, tasks, results),
            answer_tokens=np.where(is_last, answers, calls),
            pause_s=pauses(requested, like.tool_s, like.tool_cv_ratio, like.tool_law, seed),
        )

    return grown(filled(count, make, sharing), sharing, rate_per_s, seed, law, knobs)
