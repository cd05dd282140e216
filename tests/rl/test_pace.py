"""Steps side by side: the period by hand, against the recurrence played out, and its limits."""

import pytest

from orrery.rl.pace import CLOSE, least_period_s


def played_s(latency_s: float, training_s: float, staleness: int) -> float:
    """Step n is begun once step n - K - 1 is trained, and trained once it is written and step n - 1 is trained."""
    ends = [0.0] * (staleness + 1)
    for _ in range(4000):
        ends.append(max(ends[-1], ends[-staleness - 1] + latency_s) + training_s)
    return (ends[-1] - ends[-2001]) / 2000


@pytest.mark.parametrize(
    ("latency_s", "training_s", "staleness", "period_s"),
    [
        (100.0, 40.0, 0, 140.0),  # on policy: one after the other
        (100.0, 40.0, 1, 70.0),  # two batches in flight: (G + T) / 2
        (30.0, 40.0, 1, 40.0),  # the trainer decides
        (100.0, 40.0, 3, 40.0),
        (100.0, 10.0, 4, 22.0),  # (G + T) / (K + 1)
    ],
)
def test_period_of_engines_that_never_fill(latency_s, training_s, staleness, period_s):
    found = least_period_s(lambda _: latency_s, training_s, staleness, latency_s)
    assert found == pytest.approx(period_s)
    assert played_s(latency_s, training_s, staleness) == pytest.approx(period_s)


def test_engines_that_fill_decide_the_period():
    """A batch takes 100 s alone and 60 s of engines' time: no faster than 60 s, latency grows without end below."""

    def latency_s(period_s: float) -> float:
        return 100.0 if period_s >= 60.0 else 1e9

    found = least_period_s(latency_s, 20.0, 4, 100.0)
    assert 60.0 <= found <= 60.0 * (1.0 + 2.0 * CLOSE)
    assert least_period_s(latency_s, 20.0, 4, 100.0, least_s=75.0) == 75.0
