"""Weights that stream through a window, by orrery estimate: by hand, at their limits, and what is refused."""

import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.catalog.models import get_model
from orrery.scenario.weight_window import WeightWindowAnswer

ASKED = {
    "model": "llama-2-7b",
    "device": "intel-n150",
    "tp": 8,
    "weight_window": 2,
    "drive_bytes_per_s": 1e9,
    "link_bytes_per_s": 25e6,
    "link_s": 4e-3,
    "input_tokens": 8,
    "output_tokens": 32,
}


def window(**changes):
    found = orrery.estimate(**{**ASKED, **changes})
    assert isinstance(found, WeightWindowAnswer)
    return found


def test_a_slow_drive_is_the_bytes_over_its_rate():
    model = get_model("llama-2-7b")
    inner = sum(x.num_parameters for x in model.blocks[0].linears) * 32 / 8
    elements = inner + model.embedding_parameters + model.head.num_parameters
    found = window(drive_bytes_per_s=1e6, link_bytes_per_s=1e12, link_s=0)
    # two bytes an element in the file; whatever is computed hides behind the drive but for the last block's own work
    assert found.window.tpot_s == pytest.approx(2 * elements / 1e6, rel=0.01)
    # the head of 131 million elements in FP32, its copy while it is read, and the feed-forward part before it
    ffn = 3 * 4096 * 11008 / 8
    assert found.window.peak_bytes == pytest.approx(4 * (32000 * 4096 + ffn) + 2 * 32000 * 4096)


def test_sums_by_hand():
    found = window()
    message = 4096 * 4.0
    # star: two ways, and the first machine's link carries seven messages each way
    assert found.exchange_s["star"] == pytest.approx(2 * (4e-3 + 7 * message / 25e6))
    assert found.exchange_s["ring"] == pytest.approx(14 * (4e-3 + message / 8 / 25e6))
    # 64 parts of a token wait for a sum each
    faster = window(link_s=0.0, drive_bytes_per_s=1e12)
    slower = window(drive_bytes_per_s=1e12)
    assert slower.window.tpot_s - faster.window.tpot_s == pytest.approx(64 * 2 * 4e-3, rel=0.01)
    assert window(tp=1).exchange_s == {"star": 0.0, "ring": 0.0}


def test_longer_windows_are_never_slower_and_hold_more():
    found = window()
    for name, order in (("ttft_s", -1), ("tpot_s", -1), ("peak_bytes", 1)):
        values = [order * getattr(one, name) for one in found.windows]
        assert values == sorted(values), name
    assert found.windows[-1].num_blocks == 66
    # a window of every block is no streaming once all is read, so the drive no longer matters
    everything = [window(weight_window=10_000, drive_bytes_per_s=rate).window for rate in (1e6, 1e12)]
    assert everything[0].num_blocks == 66
    assert everything[0].tpot_s == pytest.approx(everything[1].tpot_s)
    assert everything[0].ttft_s > 100 * everything[1].ttft_s


def test_refusals_say_what_to_write():
    for change, words in (
        ({"weight_window": None}, "has no effect without weight_window"),
        ({"drive_bytes_per_s": None}, "drive_bytes_per_s: is missing"),
        ({"batch": 4}, "write batch = 1"),
        ({"weights": "int4"}, "write what the machines compute in"),
        ({"exchange": "tree"}, "write star or ring"),
        ({"model": "mixtral-8x7b"}, "dense models"),
        ({"tp": 64}, "write at most 32"),
        ({"rate": 1.0}, "rate: not of a run with weight_window"),
    ):
        settings = {k: v for k, v in {**ASKED, **change}.items() if v is not None}
        with pytest.raises(ScenarioError, match=words):
            orrery.estimate(**settings)
