"""Changes that make a job with offloading need less of its device, in their order."""

from types import SimpleNamespace

from orrery.scenario import train_offload as offload


def ready(micro_batch, tp=2, may_recompute=True, trains="all weights", per_node=8):
    layout = SimpleNamespace(micro_batch=micro_batch, tp=tp)
    job = SimpleNamespace(cluster=SimpleNamespace(devices_per_node=per_node))
    knobs = SimpleNamespace(trains=trains)
    return SimpleNamespace(layout=layout, may_recompute=may_recompute, knobs=knobs, name="x", job=job)


def test_changes_that_need_less_of_a_device(monkeypatch):
    """Recompute, divisors of the micro-batch, both; other techniques; 4, 6 and 8 of a node's devices."""
    monkeypatch.setattr(offload, "ladder", lambda: ("x", "y"))
    found = list(offload._easier(ready(4, per_node=4)))
    assert found == [
        {"recompute": "full"},
        {"micro_batch": 2},
        {"micro_batch": 1},
        {"recompute": "full", "micro_batch": 2},
        {"recompute": "full", "micro_batch": 1},
        {"offload": "y", "recompute": None},
        {"tp": 4, "dp": None},
        {"tp": 4, "dp": None, "micro_batch": 1},
        {"offload": "y", "tp": 4, "dp": None, "micro_batch": 1, "recompute": None},
    ]
    bare = list(offload._easier(ready(3, per_node=2, may_recompute=False, trains="adapters")))
    assert bare == [{}, {"micro_batch": 1}]
    assert offload._wider(SimpleNamespace(tp=2), ready(1).job) == [4, 6, 8]
    assert offload._wider(SimpleNamespace(tp=3), ready(1).job) == [6]
