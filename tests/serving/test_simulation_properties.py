"""Whatever is drawn: nothing is lost, nothing is left over, and the books balance."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, given, settings

sys.path.insert(0, str(Path(__file__).parent))
from small_runs import check, digest, limits, play, service_of, setting, traffic  # noqa: E402


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(setting(), limits(), traffic())
def test_books_balance_after_every_run(chosen, limits, requests):
    world, _ = play(service_of(**chosen), requests, **limits)
    check(requests, world)
    again, _ = play(service_of(**chosen), requests, **limits)
    assert digest(world) == digest(again)
