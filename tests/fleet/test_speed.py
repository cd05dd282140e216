"""How fast a day is served (run with -m bench); figures are printed."""

import resource
import time

import pytest

from orrery.scenario.fleet.ask import simulate_fleet

pytestmark = pytest.mark.bench

DAY = {"model": "llama-3.1-8b", "device": "h100-sxm", "days": 1, "seed": 1}


@pytest.mark.parametrize(
    ("lengths", "limit_s"), [((1000, 200), 20.0), ((2048, 16), 15.0)], ids=["long outputs", "short outputs"]
)
def test_a_day_of_ten_replicas_at_fifty_requests_a_second(lengths, limit_s):
    started = time.process_time()
    answer = simulate_fleet(
        **DAY, rate=50.0, replicas=10, input_tokens=lengths[0], output_tokens=lengths[1], slo=["ttft:1000"]
    )
    seconds = time.process_time() - started
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{answer.num_sent:,} requests in {seconds:.1f} s of one core; {peak_bytes / 2**30:.2f} GiB at most")
    assert peak_bytes < 2 * 2**30
    assert seconds < limit_s


def test_a_steady_week_takes_seconds():
    started = time.process_time()
    week = {**DAY, "days": 7, "rate": 50.0, "rate_curve": "diurnal", "input_tokens": 1000, "output_tokens": 200}
    answer = simulate_fleet(**week, replicas_min=1, replicas_max=10, autoscaler="hpa", steady=True)
    seconds = time.process_time() - started
    print(f"{len(answer.hours)} hours in {seconds:.2f} s")
    assert seconds < 5.0
