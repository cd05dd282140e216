"""Which workers are late, round by round: patterns that codes are built for, and a bursty trace to try them on.

(B, W, lambda)-bursty: in every window of W rounds at most lambda workers are late at all, and nobody's first and last
late round of a window are more than B apart, counted with both ends. [krishnan-2023]
"""

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.training.coding.gradient_code import Bools
from orrery.training.coding.scheme import CodingKnobs


def follows_burst_model(late: Bools, knobs: CodingKnobs) -> bool:
    """Whether the newest round of ``late`` (rounds, workers) keeps to the model, the earlier ones doing so."""
    window = late[-knobs.window_rounds :]
    if np.count_nonzero(window.any(axis=0)) > knobs.num_stragglers:
        return False
    before = window[: max(0, len(window) - knobs.burst_rounds)]
    return not (before.any(axis=0) & window[-1]).any()


def is_bursty(late: Bools, knobs: CodingKnobs) -> bool:
    """Whether a whole pattern is (B, W, lambda)-bursty."""
    return all(follows_burst_model(late[: r + 1], knobs) for r in range(len(late)))


def gilbert_elliott(num_workers: int, num_rounds: int, *, late_frac: float, leave_frac: float, seed: int = 0) -> Bools:
    """Draw who is slow, (rounds, workers): each a two-state Markov chain of its own. [gilbert-1960, elliott-1963]

    ``late_frac`` of worker-rounds are slow in the long run; a slow worker recovers with ``leave_frac`` a round, so
    bursts last 1 / leave_frac rounds on average. ``leave_frac = 1 - late_frac`` is a chain without memory.
    """
    if not 0.0 <= late_frac < 1.0 or not 0.0 < leave_frac <= 1.0:
        raise ScenarioError(
            f"stragglers: late {late_frac:g}, leave {leave_frac:g}; write late in [0, 1), leave in (0, 1]."
        )
    enter = leave_frac * late_frac / (1.0 - late_frac)
    if enter > 1.0:
        raise ScenarioError(
            f"stragglers: late {late_frac:g} is too much for leave {leave_frac:g}; write a smaller leave."
        )
    drawn = stream(seed, "coding/stragglers").random((num_rounds, num_workers))
    states = np.empty((num_rounds, num_workers), dtype=np.bool_)
    state: Bools = drawn[0] < late_frac
    for r in range(num_rounds):
        if r:
            state = (state & (drawn[r] >= leave_frac)) | (~state & (drawn[r] < enter))
        states[r] = state
    return states
