"""Splitwise's gain at equal cost, worked out from the step times that its authors released.

Where steps of answers take as long as one answer's, as in their simulator, pools of DGX-A100 carry 1.4 times as many
requests as DGX-H100 that do both; where they take what the released table has for the batch, hardly more.
"""

import numpy as np
import pytest

INPUT, OUTPUT = 1155.0, 211.0  # tokens of a mean conversation
PROMPT_S = {"a100": (0.2892, 0.5404), "h100": (0.1326, 0.2528)}  # of 1024 and of 2048 tokens
ANSWERS, STEP_S = (1, 16, 32, 64), {"a100": (48.8, 57.3, 65.4, 96.6), "h100": (36.0, 40.6, 45.8, 63.8)}  # ms
LIMIT_S = 1.25 * 0.0488
BOUGHT = {"a100": 86, "h100": 40}  # for the same dollars


def prompt_s(device):
    return float(np.interp(INPUT, (1024.0, 2048.0), PROMPT_S[device]))


def step_s(device, answers, by_batch):
    return float(np.interp(answers if by_batch else 1, ANSWERS, STEP_S[device])) / 1e3


def both_phases(device, by_batch):
    """Requests/s at which the mean gap is at its limit: g = t + r g (1.1 p - t), with r g x 211 answers at a time."""

    def gap_s(rate):
        t = step_s(device, rate * LIMIT_S * OUTPUT, by_batch)
        return t + rate * LIMIT_S * (1.1 * prompt_s(device) - t)

    rates = np.linspace(0.01, 10.0, 4000)
    return float(max(r for r in rates if gap_s(r) <= LIMIT_S))


def answers_alone(by_batch):
    if not by_batch:
        return 64 / 0.0476 / OUTPUT  # its table begins at 128 tokens, 47.6 ms
    most = max(n for n in np.linspace(1, 64, 6301) if step_s("a100", n, True) <= LIMIT_S)
    return most / LIMIT_S / OUTPUT


def pools(by_batch):
    """The best split of 86 machines, prompts read 2048 tokens at a time without a pause."""
    prompts = 2048 / PROMPT_S["a100"][1] / INPUT
    return max(min(n * prompts, (BOUGHT["a100"] - n) * answers_alone(by_batch)) for n in range(1, BOUGHT["a100"]))


def test_machines_that_do_both():
    assert both_phases("a100", False) == pytest.approx(0.64, rel=0.05)
    assert both_phases("h100", False) == pytest.approx(3.2, rel=0.05)
    assert both_phases("h100", True) == pytest.approx(2.2, rel=0.05)


def test_token_machines():
    assert answers_alone(False) == pytest.approx(6.4, rel=0.02)
    assert answers_alone(True) == pytest.approx(1.8, rel=0.02)


def test_the_gain_at_equal_cost_is_that_of_steps_that_answers_do_not_slow():
    flat = pools(False) / (BOUGHT["h100"] * both_phases("h100", False))
    priced = pools(True) / (BOUGHT["h100"] * both_phases("h100", True))
    assert flat == pytest.approx(1.45, rel=0.05)
    assert priced == pytest.approx(1.1, rel=0.05)
