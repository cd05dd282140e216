"""Star and ring on slow ways: by hand, and where each is better."""

from orrery.network.home import ring_s, star_s


def test_by_hand():
    assert star_s(4, 100.0, 0.01, 1000.0) == 2 * (0.01 + 0.3)
    assert ring_s(4, 100.0, 0.01, 1000.0) == 6 * (0.01 + 0.025)
    assert star_s(1, 100.0, 0.01, 1000.0) == ring_s(1, 100.0, 0.01, 1000.0) == 0.0


def test_a_star_suits_long_ways_and_a_ring_long_messages():
    assert star_s(8, 1e4, 4e-3, 25e6) < ring_s(8, 1e4, 4e-3, 25e6)
    assert star_s(8, 1e8, 4e-3, 25e6) > ring_s(8, 1e8, 4e-3, 25e6)


def test_two_and_three_devices():
    """100 bytes at 1000 bytes/s over ways of 0.01 s: one message to the middle, or two, each way."""
    assert star_s(2, 100.0, 0.01, 1000.0) == 2 * (0.01 + 0.1)
    assert star_s(3, 100.0, 0.01, 1000.0) == 2 * (0.01 + 0.2)
    assert ring_s(2, 100.0, 0.01, 1000.0) == 2 * (0.01 + 0.05)
