"""How quick a rank gathers a layer, how many devices more a job takes, and the longest session, by hand."""

from math import inf
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario import split_session, train_plan, train_tiers


def test_a_rank_gathers_what_the_others_hold(monkeypatch):
    """Three quarters of 80 bytes in 5 s; a lone rank holds all."""
    monkeypatch.setattr(train_tiers, "exchange_s", lambda job, layout, kind, size: 5.0)
    assert train_tiers._rate_bytes_per_s(None, SimpleNamespace(dp=4), 80.0) == 12.0
    assert train_tiers._rate_bytes_per_s(None, SimpleNamespace(dp=1), 80.0) == inf


@pytest.mark.parametrize(("need", "more"), [(81.0, 2), (150.0, 2), (170.0, 3), (410.0, 6)])
def test_the_nearest_layout_says_how_many_devices_more(need, more):
    """Of 80 bytes; candidates without a layout do not count, and of the others the one that needs least."""
    cluster = SimpleNamespace(num_devices=8, device=SimpleNamespace(name="d"))
    job = SimpleNamespace(model=SimpleNamespace(name="m"), cluster=cluster)
    rejected = [
        SimpleNamespace(nearest="far", need_bytes=need + 1.0, have_bytes=80.0),
        SimpleNamespace(nearest="near", need_bytes=need, have_bytes=80.0),
        SimpleNamespace(nearest=None, need_bytes=1.0, have_bytes=80.0),
    ]
    found = train_plan._nothing(job, SimpleNamespace(rejected=rejected))
    assert (found.need, found.have) == (need, 80.0)
    assert found.what == "m on 8 x d, even with near"
    assert f"Use some {more} times as many devices" in found.smallest_change


def test_a_session_has_frames_up_to_a_limit(monkeypatch):
    """Ten seconds at a frame a second are ten frames."""
    monkeypatch.setattr(split_session, "MAX_FRAMES", 9)
    monkeypatch.setattr(split_session, "link_trace", lambda trace, seed: (np.zeros(1), np.ones(1), 10.0))
    inputs = SimpleNamespace(trace="", seed=0, frame_s=1.0)
    with pytest.raises(ScenarioError, match="10 frames over 10 s; at most 9"):
        split_session.session((), None, 1.0, inputs)
    monkeypatch.setattr(split_session, "MAX_FRAMES", 10)
    monkeypatch.setattr(split_session, "Frames", lambda **given: given["link_bytes_per_s"].size)
    asked = []
    monkeypatch.setattr(split_session, "delays_s", lambda cuts, frames: asked.append(frames) or np.zeros((frames, 0)))
    monkeypatch.setattr(split_session, "_throughout", lambda *given: [])
    monkeypatch.setattr(split_session, "followed", lambda *given: None)
    monkeypatch.setattr(split_session, "policy", lambda name, *given: name)
    monkeypatch.setattr(split_session, "_battery_s", lambda *given: None)
    settings = {"way_s": 0.0, "watts": None, "limit_s": inf, "storage_bytes_per_s": 0.0}
    found = split_session.session((), None, 1.0, SimpleNamespace(**vars(inputs), **settings))
    assert (asked, found.num_frames, found.duration_s, found.policies) == ([10], 10, 10.0, ("following the link",))
