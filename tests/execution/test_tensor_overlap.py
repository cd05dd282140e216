"""Collectives beside products: by hand, at the limits, between the bounds, and against a slow oracle."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.base.extension_points import knob_array
from orrery.execution.train.hidden import EXPERT, TENSOR
from orrery.execution.train.overlap import Pair, beside

ALL = [(extension_point, name) for extension_point in (TENSOR, EXPERT) for name in sorted(extension_point.techniques)]
each = pytest.mark.parametrize(("extension_point", "name"), ALL, ids=[name for _, name in ALL])
SECONDS = st.floats(0.0, 10.0, allow_subnormal=False)


def pair(compute, network, weight=0.0, contention=1.0, launch=0.0, latency=0.0, **more):
    """A layer whose every further piece costs ``launch``, and every further message ``latency``."""
    compute, network, weight = (np.atleast_1d(np.asarray(x, dtype=float)) for x in (compute, network, weight))
    more = {k: np.asarray(v, dtype=float) if k.endswith("_s") else v for k, v in more.items()}
    return Pair(
        compute_s=compute,
        network_s=network,
        num_collectives=2.0,
        cut_compute_s=lambda n: compute + (n - 1) * launch,
        cut_columns_s=lambda n: compute + (n - 1) * launch,
        cut_network_s=lambda n: network + (n - 1) * latency,
        backward_weight_s=weight,
        contention_ratio=contention,
        **more,
    )


def run(extension_point, name, layer, **knobs):
    technique = extension_point.get(name)
    return technique.rule(layer, knob_array(technique, **knobs))


pairs = st.builds(
    pair,
    st.lists(SECONDS, min_size=3, max_size=3),
    st.lists(SECONDS, min_size=3, max_size=3),
    SECONDS,
    contention=st.floats(1.0, 2.0),
    launch=st.floats(0.0, 0.5),
    latency=st.floats(0.0, 0.5),
    inside_s=SECONDS,
)


def test_all_are_found():
    assert sorted(TENSOR.techniques) == [
        "domino",
        "pieces",
        "serial",
        "tile-fusion",
        "weight-gradients",
    ]
    assert sorted(EXPERT.techniques) == [
        "expert-pipeline",
        "expert-serial",
        "shadowing",
        "sparse-materialisation",
    ]


FEW = st.integers(1, 4)
DRAWN = {
    "weight-gradients": {"free_frac": st.floats(0.0, 1.0)},
    "pieces": {"num_pieces": st.integers(1, 9)},
    "domino": {"row_slices": FEW, "column_slices": FEW, "last_frac": st.floats(0.0, 1.0)},
    "tile-fusion": {
        "num_stages": st.integers(1, 99),
        "fused_frac": st.floats(0.0, 1.0),
        "adds_in_memory": st.booleans(),
    },
    "expert-pipeline": {"num_chunks": st.integers(0, 4), "has_two_streams": st.integers(0, 1)},
}
"""Settings to draw, of techniques that have any that matter here."""


@each
@settings(max_examples=20, deadline=None)
@given(layer=pairs, data=st.data())
def test_between_the_bounds(extension_point, name, layer, data):
    """Never below work or network alone, never above one after the other, however it is set."""
    took_s = run(extension_point, name, layer, **{k: data.draw(v, k) for k, v in DRAWN.get(name, {}).items()})
    slack = 1e-9
    assert took_s.shape == (3,)
    assert (took_s <= layer.compute_s + layer.backward_weight_s + layer.network_s + layer.inside_s + slack).all()
    assert (took_s >= layer.compute_s + layer.backward_weight_s - slack).all()
    assert (took_s >= layer.network_s - slack).all()


@each
@settings(max_examples=20, deadline=None)
@given(
    compute=SECONDS,
    weight=SECONDS,
    contention=st.floats(1.0, 2.0),
    launch=st.floats(0.0, 0.5),
    data=st.data(),
)
def test_without_a_network_only_products_are_left(extension_point, name, compute, weight, contention, launch, data):
    knobs = {k: data.draw(v, k) for k, v in DRAWN.get(name, {}).items()}
    took_s = run(extension_point, name, pair(compute, 0.0, weight, contention, launch), **knobs)
    assert took_s == pytest.approx(compute + weight)


@each
@settings(max_examples=20, deadline=None)
@given(network=SECONDS, latency=st.floats(0.0, 0.5))
def test_without_products_only_the_network_is_left(extension_point, name, network, latency):
    assert run(extension_point, name, pair(0.0, network, latency=latency)) == pytest.approx(network)


@each
@given(layer=pairs)
@settings(max_examples=20, deadline=None)
def test_every_entry_is_by_itself(extension_point, name, layer):
    whole = run(extension_point, name, layer)
    for i in range(3):
        alone = pair(
            layer.compute_s[i],
            layer.network_s[i],
            layer.backward_weight_s,
            layer.contention_ratio,
            launch=float(layer.cut_compute_s(2)[0] - layer.compute_s[0]),
            latency=float(layer.cut_network_s(2)[0] - layer.network_s[0]),
            inside_s=layer.inside_s,
        )
        assert run(extension_point, name, alone)[0] == pytest.approx(whole[i], abs=1e-9)


@given(compute=SECONDS, network=SECONDS, ratio=st.floats(1.0, 3.0))
def test_beside_is_a_product_that_goes_slower_while_a_collective_runs(compute, network, ratio):
    """Walked through: while the collective runs the product does 1/ratio of its work, then the rest at full speed."""
    done = min(compute, network / ratio)
    walked_s = network + (compute - done) if compute > done else network
    assert float(beside(np.asarray(compute), np.asarray(network), ratio)) == pytest.approx(walked_s)


def test_weight_gradients_by_hand():
    """Forward 10 + 6; backward 10 + (8 beside 6); with sequence parallelism a third of the 6 is waited for."""
    assert run(TENSOR, "weight-gradients", pair(10, 6))[0] == 16
    assert run(TENSOR, "weight-gradients", pair(10, 6, weight=8))[0] == 18
    assert run(TENSOR, "weight-gradients", pair(10, 12, weight=8))[0] == 22
    assert run(TENSOR, "weight-gradients", pair(10, 6, weight=8), free_frac=2 / 3)[0] == pytest.approx(20)
    assert run(TENSOR, "weight-gradients", pair(10, 6, weight=8, contention=1.5))[0] == pytest.approx(10 + 8 + 2)


def test_pieces_by_hand():
    """Four pieces of 2 s and three messages of 1 or 3 s; the last piece has nothing beside it."""
    assert run(TENSOR, "pieces", pair(8, 3), num_pieces=4)[0] == 8
    assert run(TENSOR, "pieces", pair(8, 9), num_pieces=4)[0] == 3 * 3 + 2
    assert run(TENSOR, "pieces", pair(8, 3, launch=0.4), num_pieces=4)[0] == pytest.approx(9.2)
    assert run(TENSOR, "pieces", pair(8, 9), num_pieces=1)[0] == 17
    assert run(TENSOR, "pieces", pair(8, 9, weight=9), num_pieces=4)[0] == 17  # whole collectives beside the weights


def test_domino_by_hand():
    """Two row slices hide all that fits; four column slices of the last half of 8 s leave a quarter of the network."""
    assert run(TENSOR, "domino", pair(8, 6))[0] == 8
    assert run(TENSOR, "domino", pair(8, 10))[0] == 10
    assert run(TENSOR, "domino", pair(8, 10, weight=4))[0] == 12
    assert run(TENSOR, "domino", pair(8, 6, launch=0.5, latency=0.25))[0] == 8.5
    assert run(TENSOR, "domino", pair(8, 4), row_slices=1, column_slices=4)[0] == 4 + 1 + 3 * 1 + 1
    assert run(TENSOR, "domino", pair(8, 8), row_slices=1, column_slices=4)[0] == 4 + 1 + 3 * 2 + 2
    assert run(TENSOR, "domino", pair(8, 8, weight=2), row_slices=1, column_slices=4)[0] == 4 + 1 + 3 * 2 + 2
    assert run(TENSOR, "domino", pair(8, 8), row_slices=1)[0] == 16
    assert run(TENSOR, "domino", pair(8, 8, weight=5), row_slices=1)[0] == 16
    assert run(TENSOR, "domino", pair(8, 8, weight=9, contention=2.0), row_slices=1)[0] == 8 + 9 + 4


def test_domino_in_both_directions_by_hand():
    """Rows of 2 + 1 + 1 s, sums of 1, 2 or 3 s: the first starts at 3 s, the last ends its block."""
    both = {"row_slices": 2, "column_slices": 2}
    assert run(TENSOR, "domino", pair(8, 4), **both)[0] == 8 + 1
    assert run(TENSOR, "domino", pair(8, 8), **both)[0] == 3 + 2 + 2 + 2 + 2
    assert run(TENSOR, "domino", pair(8, 12), **both)[0] == 3 + 12
    assert run(TENSOR, "domino", pair(8, 4, weight=3), **both)[0] == 8 + 3
    assert run(TENSOR, "domino", pair(8, 4), **both)[0] > run(TENSOR, "domino", pair(8, 4))[0]


def test_tile_fusion_by_hand():
    """Half of 8 s of network is fused: four stages of 2 s, a hop of 4/3 s beside each but the first, then the rest."""
    assert run(TENSOR, "tile-fusion", pair(8, 8), num_stages=4)[0] == 2 + 3 * 2 + 4
    # four devices: 2 x 4 - 3 = 5 chunks where memory adds, 3 x 4 - 2 = 10 where it does not: half of the contention
    crowded = replace(pair(8, 3), contention_ratio=2.0)
    alone, adding = (
        run(TENSOR, "tile-fusion", crowded, num_stages=4, fused_frac=1.0, adds_in_memory=a)[0] for a in (False, True)
    )
    assert alone == pytest.approx(2 + 3 * (2 + 1 * 0.5))
    assert adding == pytest.approx(2 + 3 * (2 + 1 * 0.25))
    assert run(TENSOR, "tile-fusion", pair(8, 6), num_stages=4, fused_frac=1.0)[0] == 2 + 3 * 2
    assert run(TENSOR, "tile-fusion", pair(8, 12), num_stages=4, fused_frac=1.0)[0] == 2 + 3 * 4
    assert run(TENSOR, "tile-fusion", pair(8, 6), num_stages=1, fused_frac=1.0)[0] == 8 + 6
    fine = run(TENSOR, "tile-fusion", pair(8, 6), num_stages=1 << 20, fused_frac=1.0)[0]
    assert fine == pytest.approx(8, rel=1e-5)


def test_expert_pipeline_by_hand():
    """Two chunks: out 1, out 1, experts 3 and 3, back 1 and 1; back waits for the second chunk's experts."""
    assert run(EXPERT, "expert-pipeline", pair(6, 4), num_chunks=2)[0] == 1 + 6 + 1
    assert run(EXPERT, "expert-pipeline", pair(2, 8), num_chunks=2)[0] == 8
    assert run(EXPERT, "expert-pipeline", pair(6, 4), num_chunks=1)[0] == 10
    assert run(EXPERT, "expert-pipeline", pair(6, 4, weight=4), num_chunks=2)[0] == 1 + 6 + 4
    assert run(EXPERT, "expert-pipeline", pair(6, 4, inside_s=4), num_chunks=2)[0] == 2 + 6 + 2
    one_stream = {"num_chunks": 2, "has_two_streams": 0}
    assert run(EXPERT, "expert-pipeline", pair(1, 4, inside_s=4), **one_stream)[0] == 8.0
    assert run(EXPERT, "expert-pipeline", pair(1, 4, inside_s=4), num_chunks=2)[0] == 6.0


@given(layer=pairs)
@settings(max_examples=20, deadline=None)
def test_the_best_number_of_chunks_is_taken(layer):
    best = run(EXPERT, "expert-pipeline", layer, most_chunks=6)
    tried = [run(EXPERT, "expert-pipeline", layer, num_chunks=n) for n in range(1, 7)]
    assert best == pytest.approx(np.minimum.reduce(tried))


@settings(max_examples=20, deadline=None)
@given(chunks=st.integers(1, 5), times=st.tuples(*[st.integers(0, 9)] * 3), two=st.booleans())
def test_expert_pipeline_against_an_event_by_event_oracle(chunks, times, two):
    """Tasks taken from each stream's queue in order, each as soon as its chunk's task before it is done."""
    expert, far, near = (float(t) for t in times)
    outs = [[("far", i, 0), ("near", i, 1)] for i in range(chunks)]
    backs = [[("near", i, 3), ("far", i, 4)] for i in range(chunks)]
    order = [task for group in outs + backs for task in group]
    queues = {"cores": [("cores", i, 2) for i in range(chunks)]}
    if two:
        queues |= {s: [t for t in order if t[0] == s] for s in ("far", "near")}
    else:
        queues["link"] = order
    took = {"far": far, "near": near, "cores": expert}
    done, clock = {}, dict.fromkeys(queues, 0.0)
    while any(queues.values()):
        for stream, queue in queues.items():
            while queue and (queue[0][2] == 0 or (queue[0][1], queue[0][2] - 1) in done):
                kind, chunk, stage = queue.pop(0)
                clock[stream] = max(clock[stream], done.get((chunk, stage - 1), 0.0)) + took[kind]
                done[chunk, stage] = clock[stream]
    layer = pair(expert * chunks, 2 * far * chunks, inside_s=2 * near * chunks)
    found = run(EXPERT, "expert-pipeline", layer, num_chunks=chunks, has_two_streams=int(two))
    assert found[0] == pytest.approx(max(done.values()))


def skewed(gather, other=0.0, **more):
    """Four experts on two ranks; the first takes half of the tokens, so its rank has 0.7 of them."""
    return pair(
        7, 10, expert_share=(0.5, 0.2, 0.2, 0.1), num_ranks=2, expert_gather_s=gather, other_compute_s=other, **more
    )


def test_sparse_materialisation_by_hand():
    """One gathered: half of the tokens stay, 0.25 on each rank; the fuller rank has 0.3 of the rest: 0.55 of 0.7.

    The exchange waits for the rank that receives most: 0.3 of all tokens where it was 0.7.
    """
    one = 7 * (0.25 + 0.3) / 0.7 + 10 * 0.3 / 0.7
    assert run(EXPERT, "sparse-materialisation", skewed(2), most_gathered=1)[0] == pytest.approx(one + 2)
    assert run(EXPERT, "sparse-materialisation", skewed(2, other=5), most_gathered=1)[0] == pytest.approx(one)
    slowed = skewed(2, other=5, contention=2.0)
    assert run(EXPERT, "sparse-materialisation", slowed, most_gathered=1)[0] == pytest.approx(one + 1)
    every = run(EXPERT, "sparse-materialisation", skewed(0), most_gathered=4)[0]
    assert every == pytest.approx(one), "all but one rank's own at most"
    assert run(EXPERT, "sparse-materialisation", skewed(100))[0] == 17
    assert run(EXPERT, "sparse-materialisation", skewed(0), most_gathered=0)[0] == 17


def test_even_loads_leave_nothing_to_gain():
    """Eight experts on four ranks, all alike: a rank that no expert was gathered of has as much to do as before."""
    layer = pair(5, 3, expert_share=(0.125,) * 8, num_ranks=4, expert_gather_s=0.0, other_compute_s=9.0)
    assert run(EXPERT, "sparse-materialisation", layer, most_gathered=3)[0] == 8


@settings(max_examples=40, deadline=None)
@given(
    shares=st.lists(st.integers(1, 100), min_size=8, max_size=8),
    gather=st.floats(0.0, 3.0),
    most=st.integers(0, 8),
)
def test_gathering_more_is_allowed_but_never_forced(shares, gather, most):
    share = tuple(s / sum(shares) for s in shares)
    layer = pair(5, 3, expert_share=share, num_ranks=4, expert_gather_s=gather, other_compute_s=1.0)
    fewer, more = (run(EXPERT, "sparse-materialisation", layer, most_gathered=n)[0] for n in (most, 8))
    fullest = max(share[i] + share[i + 1] for i in range(0, 8, 2))
    assert 5 * 0.25 / fullest - 1e-9 <= more <= fewer <= 8


@pytest.mark.parametrize(
    ("extension_point", "name", "knobs"),
    [
        (TENSOR, "pieces", {"num_pieces": 0}),
        (TENSOR, "domino", {"row_slices": 0}),
        (TENSOR, "tile-fusion", {"fused_frac": 1.5}),
        (TENSOR, "weight-gradients", {"free_frac": -0.1}),
        (EXPERT, "expert-pipeline", {"num_chunks": -1}),
        (EXPERT, "sparse-materialisation", {"most_gathered": -1}),
    ],
)
def test_senseless_knobs_are_refused(extension_point, name, knobs):
    with pytest.raises(ScenarioError, match="write"):
        knob_array(extension_point.get(name), **knobs)
