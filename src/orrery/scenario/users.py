"""People who send a request, wait for its end, think, and send the next: a closed loop with a pause.

Of N people, some wait for a reply and the others think. In steady state (Little's law on the loop)::

    N = requests in flight + rate x think time

so the requests in flight are the concurrency c at which c + rate(c) x think time is N.
"""

from dataclasses import replace

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.units import figures
from orrery.engine.streams import stream
from orrery.execution.memory import Infeasible
from orrery.scenario.resolve import Question
from orrery.scenario.schema import Scenario
from orrery.serving.estimate import Estimate, estimate
from orrery.serving.requests import Requests
from orrery.serving.synthesis import Length
from orrery.serving.synthesis.lengths import draw

THINK_S = 30.0
"""Where nobody says how long people think."""


def think_s(scenario: Scenario) -> float:
    """The mean pause of a person."""
    return THINK_S if scenario.think_s is None else scenario.think_s


def at_users(scenario: Scenario, question: Question) -> Question | Infeasible:
    """The question with as many requests in flight as the scenario's people have, and a note of it."""
    users, pause_s = scenario.users, think_s(scenario)
    if users is None:
        return question

    def question_at(concurrency: int) -> Question:
        return replace(question, workload=replace(question.workload, concurrency=concurrency))

    def found_at(concurrency: int) -> Estimate | Infeasible:
        return estimate(question.deployment, question_at(concurrency).workload)

    low, high = 1, users
    while low < high:
        middle = (low + high + 1) // 2
        found = found_at(middle)
        if isinstance(found, Infeasible):
            return found
        if middle + found.requests_per_s * pause_s <= users:
            low = middle
        else:
            high = middle - 1
    note = f"users: {users:,} who think {figures(pause_s)} s between a reply and the next request: {low:,} in flight"
    return replace(question_at(low), notes=(*question.notes, note))


def users_requests(scenario: Scenario, count: int, lengths: tuple[Length, Length]) -> Requests:
    """``count`` requests of the scenario's people: each one's follow each other after exponential pauses.

    Everybody sends as many, begins with a pause and ends with one. Each person's pauses are scaled to the mean, so that
    all stop at about the same time, the last pause included: else the run would end with the few who are slowest, or
    with everybody's last request at once. Requests of one person stand behind each other, and people in the order of
    their first.
    """
    users, seed = min(scenario.users or 1, count), scenario.seed or 0
    pauses = stream(seed, "pauses").standard_exponential(count + users)
    drawn = zip(np.array_split(pauses[:count], users), pauses[count:], strict=True)
    means = ((gaps, (gaps.sum() + last) / (gaps.size + 1)) for gaps, last in drawn)
    scaled = sorted((think_s(scenario) * gaps / mean for gaps, mean in means), key=lambda gaps: float(gaps[0]))
    each = np.array([gaps.size for gaps in scaled])
    pause_s, starts = np.concatenate(scaled), np.cumsum(each) - each
    person = np.repeat(np.arange(users), each)
    after = np.arange(count) - 1
    after[starts] = -1
    return Requests(
        arrive_s=pause_s,
        input_tokens=draw(lengths[0], count, stream(seed, "lengths/input")),
        output_tokens=draw(lengths[1], count, stream(seed, "lengths/output")),
        after=after,
        session=person,
        client=person,
    )


def users_rate(scenario: Scenario) -> float:
    """Requests a second of the scenario's people at most, where a reply takes no time."""
    pause_s = think_s(scenario)
    if pause_s <= 0:
        raise ScenarioError("users: a plan needs a rate; write think_s = 30 (--think-time) beside users, or rate = 4.")
    return (scenario.users or 0) / pause_s
