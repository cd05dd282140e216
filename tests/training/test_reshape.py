"""Checkpoints of one layout under another: every bit comes back, whatever the two layouts are."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.training.reshape import (
    Outage,
    Parameter,
    Rank,
    ShardLayout,
    Storage,
    atoms,
    load,
    read_atoms,
    read_shards,
    recovery,
    reshape_times,
    save,
    write_atoms,
    write_shards,
)
from orrery.training.reshape.parameter import joined, piece
from orrery.training.reshape.storage import ATOM_BYTES, SHARD_BYTES, sequential_convert_s

KINDS = ("weight", "moment", "second_moment")


def decoder(layers, heads, kv_heads, head_size, experts, vocab):
    """A small decoder with every way to cut a parameter; one odd size that no degree divides."""
    hidden = heads * head_size
    yield Parameter(name="embedding", shape=(vocab, hidden), split="vocab", pad_rows=4)
    for i in range(1, layers + 1):
        yield Parameter(name=f"{i}.norm", shape=(hidden,), stage_position=i)
        yield Parameter(
            name=f"{i}.qkv",
            shape=((heads + 2 * kv_heads) * head_size, hidden),
            split="qkv",
            stage_position=i,
            heads=(heads, kv_heads, kv_heads),
        )
        yield Parameter(name=f"{i}.out", shape=(hidden, hidden), split="row", stage_position=i)
        yield Parameter(name=f"{i}.up", shape=(13, hidden), split="column", stage_position=i)
        for kind, shape in (("column", (experts, 11, hidden)), ("row", (experts, hidden, 11))):
            yield Parameter(name=f"{i}.{kind}", shape=shape, split=kind, stage_position=i, is_expert=True)
    yield Parameter(name="head", shape=(vocab, hidden), split="vocab", stage_position=layers + 1)


@st.composite
def models(draw):
    kv_heads = draw(st.sampled_from([1, 2, 4]))
    return list(
        decoder(
            draw(st.integers(1, 3)),
            kv_heads * draw(st.sampled_from([1, 2])) * 2,
            kv_heads,
            2,
            4,
            draw(st.integers(5, 9)),
        )
    )


@st.composite
def layouts(draw):
    ep = draw(st.sampled_from([1, 2, 4]))
    return ShardLayout(
        tp=draw(st.sampled_from([1, 2])),
        pp=draw(st.integers(1, 3)),
        dp=ep * draw(st.integers(1, 3)),
        ep=ep,
        zero=draw(st.integers(0, 3)),
    )


def states(parameters, seed):
    """Random bits, not numbers: negative zeros, infinities and NaNs with a payload must survive too."""
    rng = np.random.default_rng(seed)
    bits = lambda p: rng.integers(0, 2**32, p.shape, dtype=np.uint32).view(np.float32)  # noqa: E731
    return {kind: {p.name: bits(p) for p in parameters} for kind in KINDS}


def same(a, b):
    """Equal keys, shapes, types and bits."""
    assert a.keys() == b.keys()
    for key in a:
        assert a[key].shape == b[key].shape, key
        assert a[key].dtype == b[key].dtype, key
        assert a[key].tobytes() == b[key].tobytes(), key


@settings(deadline=None, max_examples=40)
@given(models(), layouts(), layouts(), st.integers(0, 2**32 - 1))
def test_any_layout_comes_back_under_any_other(parameters, source, target, seed):
    whole = states(parameters, seed)
    found = atoms(parameters, save(parameters, whole, source), source)
    assert found.keys() == whole.keys()
    for kind in KINDS:
        same(found[kind], whole[kind])
    reshaped, straight = load(parameters, found, target), load(parameters, whole, target)
    assert reshaped.keys() == straight.keys() == set(target.ranks())
    for rank in straight:
        same(reshaped[rank], straight[rank])


@settings(deadline=None, max_examples=25)
@given(models(), layouts())
def test_everything_is_saved_once_but_for_padding_and_what_tensor_ranks_share(parameters, layout):
    saved = save(parameters, states(parameters, 0), layout)
    elements = sum(a.size for shard in saved.values() for a in shard.values()) / len(KINDS)
    once = sum(p.num_elements for p in parameters)
    shared = sum(p.num_elements for p in parameters if p.split in ("whole", "qkv")) * (layout.tp - 1)
    rows = sum(p.shape[1] * 8 for p in parameters if p.split == "vocab")
    tails = layout.num_ranks * (len(parameters) if layout.zero == 3 else 2)
    assert once <= elements <= once + shared + rows + tails * layout.dp


def test_by_hand_a_flat_buffer_over_three_ranks():
    """Two parameters of 4 and 3 elements, flat over 3 ranks: 7 elements and 2 of padding."""
    parameters = [Parameter(name="a", shape=(2, 2)), Parameter(name="b", shape=(3,))]
    whole = {"weight": {"a": np.array([[1.0, 2.0], [3.0, 4.0]]), "b": np.array([5.0, 6.0, 7.0])}}
    one = save(parameters, whole, ShardLayout(dp=3, zero=1))
    assert [one[Rank(0, 0, d)]["weight/flat"].tolist() for d in range(3)] == [[1, 2, 3], [4, 5, 6], [7, 0, 0]]
    three = save(parameters, whole, ShardLayout(dp=3, zero=3))
    assert [three[Rank(0, 0, d)]["weight/a"].tolist() for d in range(3)] == [[1, 2], [3, 4], [0, 0]]
    assert [three[Rank(0, 0, d)]["weight/b"].tolist() for d in range(3)] == [[5], [6], [7]]
    assert list(save(parameters, whole, ShardLayout(dp=3))) == [Rank(0, 0, 0)]


def test_by_hand_fused_heads():
    """Four query heads and two key-value heads of one row: tensor rank 1 of 2 has queries 2, 3, key 1 and value 1."""
    p = Parameter(name="qkv", shape=(8, 1), split="qkv", heads=(4, 2, 2))
    rows = np.arange(8)[:, None]
    assert piece(p, rows, 2, 1).ravel().tolist() == [2, 3, 5, 7]
    assert [piece(p, rows, 4, r).ravel().tolist() for r in range(4)] == [[0, 4, 6], [1, 4, 6], [2, 5, 7], [3, 5, 7]]
    assert (joined(p, [piece(p, rows, 4, r) for r in range(4)]) == rows).all()


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 17), st.integers(1, 6), st.integers(1, 5), st.integers(1, 5))
def test_vocabulary_rows_are_even_and_come_back(rows, tp, pad_rows, width):
    p = Parameter(name="embedding", shape=(rows, width), split="vocab", pad_rows=pad_rows)
    whole = np.arange(rows * width, dtype=np.float32).reshape(rows, width)
    pieces = [piece(p, whole, tp, r) for r in range(tp)]
    assert len({x.shape for x in pieces}) == 1
    assert sum(len(x) for x in pieces) % pad_rows == 0
    assert (joined(p, pieces) == whole).all()


def test_experts_of_an_expert_rank():
    """Four experts over ep = 2 inside dp = 4: data ranks 1 and 3 hold experts 2 and 3."""
    p = Parameter(name="up", shape=(4, 1, 1), split="column", is_expert=True)
    whole = {"weight": {"up": np.arange(4.0).reshape(4, 1, 1)}}
    held = load([p], whole, ShardLayout(dp=4, ep=2))
    assert [held[Rank(0, 0, d)]["weight/up"].ravel().tolist() for d in range(4)] == [[0, 1], [2, 3], [0, 1], [2, 3]]
    flat = load([p], whole, ShardLayout(dp=4, ep=2, zero=1))
    assert [flat[Rank(0, 0, d)]["weight/flat_experts"].tolist() for d in range(4)] == [[0], [2], [1], [3]]


def test_files_bring_back_every_bit(tmp_path):
    parameters = list(decoder(2, 4, 2, 2, 4, 7))
    whole, layout = states(parameters, 5), ShardLayout(tp=2, pp=2, dp=2, ep=2, zero=1)
    shards = save(parameters, whole, layout)
    write_shards(tmp_path / "shards", shards)
    back = read_shards(tmp_path / "shards")
    assert back.keys() == shards.keys()
    for rank in shards:
        same(back[rank], shards[rank])
    write_atoms(tmp_path / "atoms", atoms(parameters, back, layout))
    found = read_atoms(tmp_path / "atoms")
    assert found.keys() == whole.keys()
    for kind in KINDS:
        same(found[kind], whole[kind])


def test_a_write_that_breaks_off_leaves_the_old_file(tmp_path, monkeypatch):
    old = {"weight": {"a": np.ones(3)}}
    write_atoms(tmp_path, old)

    def breaks(*args, **kwargs):
        args[0].write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", breaks)
    with pytest.raises(OSError, match="no space"):
        write_atoms(tmp_path, {"weight": {"a": np.zeros(3)}})
    assert [path.name for path in tmp_path.iterdir()] == ["weight.npz"]
    assert read_atoms(tmp_path)["weight"]["a"].tolist() == [1.0, 1.0, 1.0]


def test_times_by_hand():
    """1e9 parameters, 2 nodes of 1e9 B/s: 14 GB saved in 7 s; 7 s and 6 s to convert; 6 s to load."""
    storage = Storage(num_nodes=2, node_bytes_per_s=1e9)
    times = reshape_times(1e9, storage, storage)
    assert (SHARD_BYTES, ATOM_BYTES) == (14.0, 12.0)
    assert (times.save_s, times.convert_s, times.load_s) == (7.0, 13.0, 6.0)
    assert (times.reshape_s, times.all_s) == (19.0, 26.0)
    assert sequential_convert_s(1e9, storage) == 26.0


def test_shared_storage_is_the_limit_that_more_nodes_do_not_lift():
    slow = [
        reshape_times(1e9, s, s).all_s
        for n in (1, 4, 16)
        for s in (Storage(num_nodes=n, node_bytes_per_s=1e9, all_bytes_per_s=2e9),)
    ]
    assert slow == [52.0, 26.0, 26.0]


def test_shared_loading_reads_one_copy_and_gathers_the_rest():
    storage = Storage(num_nodes=4, node_bytes_per_s=1e9, gather_bytes_per_s=1e11)
    alone = reshape_times(1e9, storage, storage, dp=8, shares_load=False)
    shared = reshape_times(1e9, storage, storage, dp=8)
    assert alone.load_s == 24.0
    assert shared.load_s == pytest.approx(3.0 + 7 * 12e9 / 4 / 1e11)


@given(
    repair=st.floats(0, 1e5),
    remaining=st.floats(0.05, 1),
    load_s=st.floats(0, 100),
    reshape_s=st.floats(0, 100),
    back=st.floats(0, 1000),
)
def test_the_break_even_parts_the_two_ways(repair, remaining, load_s, reshape_s, back):
    found = recovery(
        Outage(repair_s=repair, remaining_frac=remaining, load_s=load_s, reshape_s=reshape_s, back_s=load_s + back)
    )
    if repair > found.break_even_s * (1 + 1e-9) + 1e-6:
        assert found.is_elastic_better
    if repair < found.break_even_s * (1 - 1e-9) - 1e-6:
        assert not found.is_elastic_better


def test_a_repair_by_hand():
    """One hour; half the speed; 60 s to load, 120 s to reshape, 180 s back: 3660 s against 120 + 1740 + 180 s."""
    found = recovery(Outage(repair_s=3600, remaining_frac=0.5, load_s=60, reshape_s=120, back_s=180))
    assert (found.waiting_lost_s, found.elastic_lost_s, found.break_even_s) == (3660, 2040, 360)
    stuck = recovery(Outage(repair_s=3600, remaining_frac=0.0, load_s=60, reshape_s=120, back_s=180))
    assert not stuck.is_elastic_better
    assert math.isinf(stuck.break_even_s)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Parameter(name="w", shape=(2, 2), split="diagonal"), "diagonal"),
        (lambda: Parameter(name="w", shape=(7, 2), split="qkv", heads=(2, 1, 1)), "heads that divide"),
        (lambda: ShardLayout(dp=4, ep=3), "ep = 3"),
        (lambda: ShardLayout(zero=4), "zero"),
        (lambda: Storage(num_nodes=0, node_bytes_per_s=1.0), "at least one node"),
        (lambda: Outage(repair_s=1, remaining_frac=2, load_s=0, reshape_s=0, back_s=0), "remaining_frac"),
        (lambda: load([Parameter(name="w", shape=(2,))], {"weight": {"w": np.ones(3)}}, ShardLayout()), "shape"),
        (lambda: load([Parameter(name="w", shape=(2,))], {"weight": {"w": np.ones(2)}}, ShardLayout(pp=2)), "pp = 2"),
        (
            lambda: piece(Parameter(name="w", shape=(6, 1), split="qkv", heads=(4, 1, 1)), np.ones((6, 1)), 3, 0),
            "tp = 3",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make, says):
    with pytest.raises(ScenarioError, match=says):
        make()


def test_a_lost_shard_another_layout_and_mixed_types_are_refused():
    parameters = list(decoder(1, 4, 2, 2, 4, 7))
    whole = states(parameters, 0)
    for zero in (0, 1, 3):
        layout = ShardLayout(tp=2, dp=2, zero=zero)
        shards = save(parameters, whole, layout)
        del shards[Rank(0, 1, 0)]
        with pytest.raises(ScenarioError, match="missing"):
            atoms(parameters, shards, layout)
    with pytest.raises(ScenarioError, match="missing"):
        atoms(parameters, save(parameters, whole, ShardLayout(zero=1)), ShardLayout(zero=3))
    whole["weight"]["1.norm"] = whole["weight"]["1.norm"].astype(np.float64)
    with pytest.raises(ScenarioError, match="<f4, <f8"):
        save(parameters, whole, ShardLayout())
    del whole["weight"]["1.norm"]
    with pytest.raises(ScenarioError, match="no weight of it"):
        save(parameters, whole, ShardLayout())


def test_an_empty_folder_is_no_checkpoint(tmp_path):
    with pytest.raises(ScenarioError, match="no shards"):
        read_shards(tmp_path)
