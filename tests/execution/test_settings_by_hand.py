"""Settings of techniques of execution: their ends, and what they are where nobody says."""

from dataclasses import fields
from math import inf

import pytest

from orrery.execution.diffusion import Job
from orrery.execution.experts.affinity import Affinity
from orrery.execution.experts.host_cache import HostCached
from orrery.execution.kv_selection import AttentionLaw
from orrery.execution.offload import OFFLOADS
from orrery.execution.overlap import OVERLAPS, knob_array
from orrery.execution.patches import PATCHES
from orrery.execution.speculation import Speculation
from orrery.execution.train.hidden import EXPERT, TENSOR
from orrery.execution.train.placement import PLACEMENTS
from orrery.execution.transfer import TRANSFERS

ENDS = [
    (PLACEMENTS, "redundancy", "num_replicas", 0, 65536),
    (EXPERT, "expert-pipeline", "num_chunks", 0, 64),
    (EXPERT, "expert-pipeline", "most_chunks", 1, 64),
    (EXPERT, "expert-pipeline", "has_two_streams", 0, 1),
    (EXPERT, "sparse-materialisation", "most_gathered", 0, 1024),
    (EXPERT, "shadowing", "most_shadowed", 0, 1024),
    (TENSOR, "domino", "row_slices", 1, 64),
    (TENSOR, "domino", "column_slices", 1, 64),
    (TENSOR, "domino", "last_frac", 0.0, 1.0),
    (TENSOR, "weight-gradients", "free_frac", 0.0, 1.0),
    (TENSOR, "tile-fusion", "num_stages", 1, 2**20),
    (TENSOR, "tile-fusion", "fused_frac", 0.0, 1.0),
    (TENSOR, "pieces", "num_pieces", 1, 1024),
    (OVERLAPS, "ladder-residual", "communication_units", 0, 131),
    (OVERLAPS, "token-split", "communication_units", 0, 131),
    (OVERLAPS, "token-split", "norm_frac", 0.0, 1.0),
    (OVERLAPS, "nano-batches", "num_batches", 2, 64),
    (OVERLAPS, "nano-batches", "network_at_90_frac", 0.9, 1.0),
    (TRANSFERS, "encrypted-serial", "call_s", 0.0, 1.0),
    (TRANSFERS, "encrypted-pipelined", "hit_frac", 0.0, 1.0),
]
LEAST = [
    (OVERLAPS, "ladder-residual", "num_units", 17),
    (OVERLAPS, "token-split", "num_units", 9),
    (OVERLAPS, "token-split", "num_devices", 1),
    (TRANSFERS, "encrypted-serial", "num_cores", 1),
    (TRANSFERS, "encrypted-pipelined", "num_cores", 1),
    (TRANSFERS, "encrypted-pipelined", "call_s", 0.0),
    (TRANSFERS, "encrypted-pipelined", "flush_s", 0.0),
    (TRANSFERS, "encrypted-pipelined", "ahead_s", 0.0),
]


def knobs_of(extension_point, name):
    return extension_point.techniques[name].knobs


@pytest.mark.parametrize(("point", "technique", "name", "low", "high"), ENDS)
def test_a_setting_reaches_both_ends_and_no_further(point, technique, name, low, high):
    kind = knobs_of(point, technique)
    for value in (low, high):
        assert getattr(kind(**{name: value}), name) == value
    beyond = 1 if isinstance(low, int) else 1e-6
    for wrong in (low - beyond, high + beyond):
        with pytest.raises(Exception, match=name):
            kind(**{name: wrong})


@pytest.mark.parametrize(("point", "technique", "name", "least"), LEAST)
def test_a_setting_has_a_least(point, technique, name, least):
    kind = knobs_of(point, technique)
    assert getattr(kind(**{name: least}), name) == least
    with pytest.raises(Exception, match=r"write|above|from"):
        kind(**{name: least - (1 if isinstance(least, int) else 1e-6)})


@pytest.mark.parametrize("technique", ["encrypted-serial", "encrypted-pipelined"])
def test_rates_are_above_nothing(technique):
    kind = knobs_of(TRANSFERS, technique)
    assert kind(core_bytes_per_s=1e-9).core_bytes_per_s == 1e-9
    with pytest.raises(Exception, match="core_bytes_per_s"):
        kind(core_bytes_per_s=0.0)
    if technique == "encrypted-pipelined":
        assert kind(piece_bytes=1e-9).piece_bytes == 1e-9
        with pytest.raises(Exception, match="piece_bytes"):
            kind(piece_bytes=0.0)


DEFAULTS = [
    (knobs_of(PLACEMENTS, "redundancy"), {}),
    (knobs_of(EXPERT, "expert-pipeline"), {"most_chunks": 8, "has_two_streams": 1}),
    (knobs_of(EXPERT, "sparse-materialisation"), {"most_gathered": 8}),
    (knobs_of(EXPERT, "shadowing"), {"most_shadowed": 8}),
    (knobs_of(TENSOR, "domino"), {"row_slices": 2, "column_slices": 1, "last_frac": 0.5}),
    (knobs_of(TENSOR, "weight-gradients"), {"free_frac": 1.0}),
    (knobs_of(TENSOR, "tile-fusion"), {"num_stages": 8, "fused_frac": 0.5}),
    (knobs_of(TENSOR, "pieces"), {"num_pieces": 8}),
    (knobs_of(OVERLAPS, "ladder-residual"), {"communication_units": 16, "num_units": 132}),
    (knobs_of(OVERLAPS, "token-split"), {"communication_units": 8, "num_units": 132, "num_devices": 8}),
    (knobs_of(TRANSFERS, "encrypted-serial"), {"core_bytes_per_s": 3.4e9, "num_cores": 1, "call_s": 10e-6}),
    (
        knobs_of(TRANSFERS, "encrypted-pipelined"),
        {"core_bytes_per_s": 3.4e9, "num_cores": 8, "call_s": 10e-6, "hit_frac": 0.95, "flush_s": 100e-6}
        | {"piece_bytes": 1e6},
    ),
    (knobs_of(OFFLOADS, "layerwise-update"), {}),
    (knobs_of(OFFLOADS, "zero-infinity"), {"num_pieces": 3, "num_subgroup_parameters": 1e9}),
    (knobs_of(OFFLOADS, "zero-offload"), {"recomputes": True, "is_pinned": True}),
    (knobs_of(OFFLOADS, "zeroth-order-streaming"), {"num_buffers": 3, "is_offloaded": True}),
    (knobs_of(OFFLOADS, "interleaved-update"), {"num_subgroup_parameters": 1e8, "recomputes": True}),
    (knobs_of(OFFLOADS, "adapters-only"), {"rank": 16, "recomputes": True}),
    (knobs_of(OFFLOADS, "overlapped-update"), {"swapped_frac": -1.0, "num_buffers": 2, "is_overlapped": True}),
    (knobs_of(OFFLOADS, "all-on-device"), {"recomputes": True}),
    (PATCHES.get("neighbour").knobs, {"read_frac": 0.3, "num_tensors": 20}),
    (PATCHES.get("whole").knobs, {"num_tensors": 60}),
    (Affinity, {"num_followers": 1}),
    (HostCached, {"block_tokens": 16}),
    (
        AttentionLaw,
        {"num_heads": 4, "hitters_frac": 0.004, "run_tokens": 4, "strength_ratio": 5.0, "drift_ratio": 1.0}
        | {"near_tokens": 32.0},
    ),
    (
        Job,
        {"ulysses": 1, "ring": 1, "guides": True, "patches": 1, "patch_read_frac": 0.3, "patch_warmup_steps": 4},
    ),
    (Speculation, {"draft_tokens": 4, "acceptance_frac": 0.7}),
]


@pytest.mark.parametrize(("kind", "on"), DEFAULTS, ids=lambda x: getattr(x, "__name__", ""))
def test_numbers_and_switches_where_nobody_says(kind, on):
    """All others are 0, off or without a limit."""
    numbers = {f.name: f.default for f in fields(kind) if type(f.default) in (int, float, bool)}
    assert {name: value for name, value in numbers.items() if value and value != inf} == on


@pytest.mark.parametrize(
    ("name", "low", "high", "step"), [("followed_frac", 0.0, 1.0, 1e-6), ("num_followers", 1, 8, 1)]
)
def test_ends_of_affinity(name, low, high, step):
    for value in (low, high):
        assert getattr(Affinity(num_experts=8, num_layers=2, **{name: value}), name) == value
    for wrong in (low - step, high + step):
        with pytest.raises(Exception, match=name):
            Affinity(num_experts=8, num_layers=2, **{name: wrong})


@pytest.mark.parametrize(
    ("total_s", "network_s", "layers", "seconds"),
    [
        (10.0, 4.0, 5.0, 6 / 20 + 19 * 6 / 20 + 4 / 20),  # 20 stages of 0.3 s of kernels beside 0.2 s of links
        (10.0, 0.0, 5.0, 10),  # no links, no layers, or nothing but links: nothing to overlap
        (10.0, 4.0, 0.0, 10),
        (4.0, 4.0, 5.0, 4),
    ],
)
def test_a_pass_split_by_tokens(total_s, network_s, layers, seconds):
    """All kernels wait for memory, so a collective takes nothing of them."""
    technique = OVERLAPS.get("token-split")
    found = technique.rule(total_s, network_s, total_s - network_s, 0.0, 0.0, layers, knob_array(technique))
    assert found == pytest.approx(seconds)
