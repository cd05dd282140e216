"""``--partition``: each state at a level of the user's machine."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import ScenarioError

JOB = {
    "model": "llama-3.2-1b",
    "device": "a100-sxm-80gb",
    "devices": 16,
    "global_batch": 32,
    "seq_len": 2048,
    "recompute": "full",
}


def rows(answer, kind):
    return {next(iter(row.values())): row for row in answer.to_json()["techniques"][kind]}


def test_states_lie_where_the_user_says():
    answer = orrery.train(**JOB, partition="levels", partition_levels="weights=node,gradients=node,optimizer=system")
    found = rows(answer, "states")
    assert {name: row["devices"] for name, row in found.items()} == {"weights": 8, "gradients": 8, "optimizer": 16}
    f, parameters = answer.job.framework, answer.job.model.num_parameters
    assert found["weights"]["held_bytes"] == pytest.approx(f.weights_bytes * parameters / 8, rel=0.01)
    assert found["optimizer"]["held_bytes"] == pytest.approx(
        (f.master_bytes + f.moments_bytes) * parameters / 16, rel=0.01
    )


def test_a_partition_by_levels_is_the_one_by_name():
    named = orrery.train(**JOB, partition="zero3")
    levels = orrery.train(
        **JOB, partition="levels", partition_levels="weights=system,gradients=system,optimizer=system"
    )
    assert named.step_time_s == levels.step_time_s
    assert named.peak_memory_bytes == levels.peak_memory_bytes


def test_zero3_is_near_what_sharding_costs():
    ours, plain = orrery.train(**JOB, partition="zero3"), orrery.train(**JOB, sharding="zero3")
    assert ours.parts["forward"] == plain.parts["forward"]
    assert ours.parts["sharding"] == pytest.approx(plain.parts["sharding"], rel=0.25)
    assert ours.peak_memory_bytes == pytest.approx(plain.peak_memory_bytes, rel=0.25)


def test_the_gain_over_zero3_goes_where_all_links_are_alike():
    def gain(node, system):
        links = {"link_levels": f"node:8:{node:g},system:16:{system:g}"}
        wide = {"wire_weight_bits": 16, "wire_gradient_bits": 16, "global_batch": 256}
        steps = rows(orrery.train(**JOB | wide, partition="three-level", **links), "partitions")
        return steps["zero3"]["step_s"] / steps["three-level"]["step_s"]

    assert gain(3e11, 3e9) > 1.5
    assert gain(3e11, 3e11) < 1.1


def test_an_inner_level_is_a_level():
    answer = orrery.train(**JOB, partition="three-level", link_levels="pair:2:4e11")
    assert rows(answer, "states")["weights"]["level"] == "pair"
    assert rows(answer, "states")["weights"]["devices"] == 2


@settings(max_examples=15, deadline=None)
@given(
    name=st.sampled_from(["zero3", "zero-plus-plus", "three-level"]),
    nodes=st.sampled_from([1, 2, 4]),
    rate=st.floats(1e9, 1e13),
    bits=st.sampled_from([None, 4, 8]),
)
def test_parts_add_up(name, nodes, rate, bits):
    job = JOB | {"devices": 8 * nodes, "global_batch": 16 * nodes, "node_link_bytes_per_s": rate}
    narrow = {} if name == "zero3" else {"wire_weight_bits": bits}
    answer = orrery.train(**job, partition=name, **narrow)
    assert sum(answer.parts.values()) == pytest.approx(answer.step_time_s)
    assert min(answer.parts.values()) >= 0.0
    compute = sum(answer.parts[p] for p in ("forward", "backward", "weight gradients", "recomputation"))
    assert answer.step_time_s >= compute
    assert answer.peak_memory_bytes == pytest.approx(rows(answer, "partitions")[name]["peak_memory_bytes"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"partition_levels": "weights=node"}, "means nothing without partition"),
        ({"partition": "zero3", "sharding": "zero3"}, "sharding: does not go with partition"),
        ({"partition": "zero3", "tp": 2}, "write tp = pp = cp = 1"),
        ({"partition": "zero3", "local_updates": "co2"}, "local_updates: does not go with partition"),
        ({"partition": "three-level", "partition_levels": "weights=rack"}, "write device or node or system"),
        ({"partition": "three-level", "partition_levels": "optimizer=device"}, "optimizer: cut over 1 devices"),
        ({"partition": "three-level", "link_levels": "die"}, "write NAME:DEVICES:BYTES_PER_S"),
        ({"partition": "zero4"}, "write 'zero3'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(given, message):
    with pytest.raises(ScenarioError, match=message):
        orrery.train(**JOB, **given)
