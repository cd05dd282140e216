"""The smallest change that would meet the SLOs, on a fleet that is met or not by a rule."""

from types import SimpleNamespace

import pytest

from orrery.scenario.fleet.change import smallest_change, with_more_replicas


def fleet(*, has_prefill=False, scaler=None, prefill_scaler=None, written=None):
    """Two to four replicas at 10 $; with prompts apart, one of those as well."""
    pools = [SimpleNamespace(role="answers"), SimpleNamespace(role="answers")]
    terms = [SimpleNamespace(replicas_min=2, replicas_max=4), SimpleNamespace(replicas_min=9, replicas_max=9)]
    if has_prefill:
        pools.insert(0, SimpleNamespace(role="prompts"))
        terms.insert(0, SimpleNamespace(replicas_min=1, replicas_max=1))
    return SimpleNamespace(
        cost_usd=10.0,
        inputs=SimpleNamespace(has_prefill=has_prefill, written=written or {}, knobs={}, prefill_knobs={"min": "1"}),
        run=SimpleNamespace(
            setup=SimpleNamespace(
                service=SimpleNamespace(own_pools=pools),
                terms=terms,
                scaler=scaler,
                prefill_scaler=prefill_scaler,
            )
        ),
    )


def asks(is_met, cost_usd):
    """A rule that tells whether settings meet the SLOs, and what they cost; every question is noted."""
    seen = []

    def ask(settings):
        seen.append(dict(settings))
        return SimpleNamespace(is_met=is_met(settings), cost_usd=cost_usd(settings))

    return ask, seen


@pytest.mark.parametrize(("needed", "tried"), [(1, [1]), (2, [1, 2]), (5, [1, 2, 4, 8, 6, 5]), (7, [1, 2, 4, 8, 6, 7])])
def test_replicas_double_until_it_is_enough_and_then_halve(needed, tried):
    """Two replicas and so many more."""
    ask, seen = asks(lambda s: s["replicas_min"] >= 2 + needed, lambda s: 5.0 * s["replicas_min"])
    found = smallest_change(fleet(), ask)
    assert [settings["replicas_min"] - 2 for settings in seen] == tried
    assert found.text == f"{needed} replica{'s' if needed > 1 else ''} more at all times"
    assert (found.cost_usd, found.added_usd) == (5.0 * (2 + needed), 5.0 * needed)
    assert found.settings == {"replicas_min": 2 + needed, "replicas_max": max(4, 2 + needed), "replicas": None}


@pytest.mark.parametrize(("needed", "is_found"), [(64, True), (65, False)])
def test_at_most_64_replicas_are_added(needed, is_found):
    ask, _ = asks(lambda s: s["replicas_min"] >= 2 + needed, lambda s: 1.0)
    assert (smallest_change(fleet(), ask) is not None) == is_found


def test_what_cannot_be_asked_meets_nothing():
    assert smallest_change(fleet(), lambda _: None) is None


def test_the_cheaper_end_of_a_fleet_with_prompts_apart_gets_more():
    """One of prompts and two that answer: both ends alone are enough, and prompts cost less."""
    ask, seen = asks(
        lambda s: s.get("prefill_replicas_min", 1) >= 3 or s.get("replicas_min", 2) >= 3,
        lambda s: 10.0 + s.get("prefill_replicas_min", 1) + 5.0 * s.get("replicas_min", 2),
    )
    found = smallest_change(fleet(has_prefill=True), ask)
    assert found.text == "2 replicas more of prefill at all times"
    assert found.settings == {"prefill_replicas_min": 3, "prefill_replicas_max": 3, "prefill_replicas": None}
    assert any({"prefill_replicas_min", "replicas_min"} <= settings.keys() for settings in seen)


def test_the_first_pool_gets_more():
    pools = [{"device": "h100-sxm", "replicas": 2}, {"device": "l4", "replicas": 9}]
    found = with_more_replicas(fleet(written={"pool": pools}), 3)
    assert found["pool"] == [{"device": "h100-sxm", "replicas_min": 5, "replicas_max": 5}, pools[1]]
    assert found["replicas"] is None


def test_calmer_and_quicker_autoscalers():
    """Twice the window, half of a target, three quarters of the load; whatever else was said stays said."""
    knobs = SimpleNamespace(down_window_s=300.0, target=0.8, headroom_frac=0.4)
    scaler = SimpleNamespace(name="hpa", knobs=knobs)
    ask, seen = asks(lambda s: s.get("autoscaler_knob") == ["target=0.4"], lambda s: 7.0)
    found = smallest_change(fleet(scaler=scaler), ask)
    assert [settings.get("autoscaler_knob") for settings in seen[:3]] == [
        ["down_window_s=600"],
        ["target=0.4"],
        ["headroom_frac=0.3"],
    ]
    assert found.text == "half the target (target = 0.4)"
    assert (found.settings["autoscaler"], found.added_usd) == ("hpa", -3.0)
    both = SimpleNamespace(name="keda", knobs=SimpleNamespace(target_requests=8.0, threshold_requests=5.0))
    ask, seen = asks(lambda s: False, lambda s: 0.0)
    assert smallest_change(fleet(prefill_scaler=both), ask) is None
    assert [settings.get("prefill_autoscaler_knob") for settings in seen[:2]] == [
        ["min=1", "target_requests=4"],
        ["min=1", "threshold_requests=2.5"],
    ]
