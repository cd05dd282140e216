"""Experts in training, by hand: which rows a rank computes, of which experts, and what it exchanges."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.execution.train.cut import choice_of
from orrery.execution.train.expert_exchange import expert_s
from orrery.execution.train.experts import DISPATCHERS, expert_times, routed
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout, expert_cut
from orrery.execution.train.products import grouped_times
from orrery.execution.train.recipe_registry import get_recipe
from orrery.execution.train.saved_activations import saved_activations
from orrery.execution.train.units import units
from orrery.hardware.cluster import Cluster
from orrery.kernels.ops import Popularity
from orrery.models.shape import model_of_shape
from orrery.training.columns import columns_of
from orrery.training.step import step_of

TOKENS, HIDDEN, WIDTH, EXPERTS, CHOSEN = 4096, 2048, 1536, 8, 2


def job_of(devices=64, **more):
    model = model_of_shape(
        name="moe",
        num_layers=4,
        hidden_size=HIDDEN,
        num_heads=16,
        ffn_size=4096,
        vocab_size=32000,
        gated_ffn=True,
        num_experts=EXPERTS,
        experts_per_token=CHOSEN,
        moe_ffn_size=WIDTH,
    )
    device = get_device("h100-sxm")
    return TrainingJob(
        model=model,
        cluster=Cluster(device=device, num_devices=devices, devices_per_node=8),
        framework=get_framework("megatron-lm", device, "bf16"),
        recipe=get_recipe("bf16"),
        seq_len=TOKENS,
        global_batch=64,
        **more,
    )


def experts_of(job):
    return next(b for b in job.model.blocks if b.experts).experts


def layout(tp, etp, ep, cp=1):
    return TrainingLayout(tp=tp, etp=etp, ep=ep, cp=cp, dp=64 // (tp * cp))


BY_HAND = [
    # tp, etp, ep, cp: rows, local experts, columns
    (1, 1, 1, 1, 8192, 8, 1536),  # all of one rank's tokens, twice each
    (1, 1, 8, 1, 8192, 1, 1536),  # an eighth of each of eight ranks' rows
    (2, 2, 1, 1, 8192, 8, 768),  # two ranks with half of the tokens each gather them and cut each expert in two
    (2, 1, 2, 1, 4096, 4, 1536),  # two ranks with half of the tokens and half of the experts each
    (2, 1, 1, 1, 4096, 8, 1536),  # two ranks with half of the tokens, all experts on both
    (4, 2, 4, 1, 4096, 2, 768),  # eight ranks with a quarter of the tokens each: 16,384 rows over four pairs
    (4, 4, 2, 1, 8192, 4, 384),
    (1, 1, 4, 4, 2048, 2, 1536),  # a sequence cut over four ranks, whose experts are dealt over the same four
    (2, 1, 8, 2, 2048, 1, 1536),
]


@pytest.mark.parametrize(("tp", "etp", "ep", "cp", "rows", "local", "columns"), BY_HAND)
def test_each_token_meets_its_experts_once(tp, etp, ep, cp, rows, local, columns):
    job = job_of()
    x = routed(job, experts_of(job), choice_of([layout(tp, etp, ep, cp)]))
    assert (x.rows[0], x.local_experts[0], x.ffn_size[0]) == (rows, local, columns)
    assert x.expert_rows[0] == rows // local
    everybody = ep * etp * x.rows[0] * x.ffn_size[0]  # rows x columns of the ranks that experts are dealt over
    assert everybody == ep * etp * (TOKENS / (tp * cp)) * CHOSEN * WIDTH


@pytest.mark.parametrize(("tp", "etp", "ep", "cp"), [row[:4] for row in BY_HAND])
def test_operations_are_those_of_the_ranks_own_tokens(tp, etp, ep, cp):
    """However experts are dealt and cut, a rank computes what its share of the tokens asks for."""
    job = job_of()
    one = units(job, choice_of([layout(1, 1, 1)])).layer.forward_flops[0]
    cut = units(job, choice_of([layout(tp, etp, ep, cp)])).layer.forward_flops[0]
    each = 2.0 * TOKENS * CHOSEN * experts_of(job).num_parameters_each
    dense = one - each
    assert cut == pytest.approx(dense / (tp * cp) + each / (tp * cp), rel=0.002), "the router is on every rank"


@pytest.mark.parametrize(("tp", "etp", "ep", "cp", "rows", "local", "columns"), BY_HAND)
def test_products_take_no_less_than_their_roof_and_not_much_more(tp, etp, ep, cp, rows, local, columns):
    job = job_of()
    found = expert_times(job, experts_of(job), choice_of([layout(tp, etp, ep, cp)]))
    least_s = 2.0 * rows * 3 * HIDDEN * columns / job.cluster.device.dense_flops_per_s["bf16"]
    for times in (found.forward_s, found.input_gradient_s):
        assert least_s < times[0] < 2.5 * least_s
    sums_s = 8.0 * local * 3 * HIDDEN * columns / job.cluster.device.memory_bandwidth_bytes_per_s  # FP32, in and out
    assert max(least_s, sums_s) < found.weight_gradient_s[0] < 2.5 * least_s + sums_s


def test_what_is_kept_are_the_rows_that_arrive():
    """Beyond the dense part: inputs of both products, both halves of the activation, and the results that came back."""
    job, block = job_of(), job_of().model.blocks[0]
    for tp, etp, ep, cp, rows, _, columns in BY_HAND:
        choice = choice_of([layout(tp, etp, ep, cp)])
        with_them = saved_activations(job, block, [], choice).everything_bytes[0]
        without = saved_activations(job, replace(block, experts=None), [], choice).everything_bytes[0]
        own = TOKENS / (tp * cp)
        by_hand = 2 * rows * (HIDDEN + columns) + 2 * own * CHOSEN * HIDDEN + 2 * 2 * rows * columns
        assert with_them - without == pytest.approx(by_hand)


@pytest.fixture
def bytes_are_seconds(monkeypatch):
    """A network on which a collective takes its message as seconds: what is asked, not what it costs."""
    requested = []

    def collective(job, kind, ranks, stride, message):
        requested.append((kind, int(ranks[0]), int(stride[0]), float(message[0])))
        return np.where(ranks > 1, message, 0.0)

    monkeypatch.setattr("orrery.execution.train.expert_exchange.collective_s", collective)
    return requested


@pytest.mark.parametrize(("tp", "etp", "ep", "cp"), [row[:4] for row in BY_HAND])
def test_copies_sent_by_hand(bytes_are_seconds, tp, etp, ep, cp):
    """To each chosen expert a copy of 2 bytes an element, and back; ranks that share an expert gather and scatter."""
    job = job_of(dispatcher="all-to-all")
    block = next(b for b in job.model.blocks if b.experts)
    found = expert_s(job, block, choice_of([layout(tp, etp, ep, cp)]))[0]
    own = 2.0 * TOKENS / (tp * cp) * CHOSEN * HIDDEN
    assert found == (2 * own if ep > 1 else 0) + (2 * own * etp if etp > 1 else 0)
    assert ("all_to_all", ep, etp, own) in bytes_are_seconds


def test_gathering_by_hand(bytes_are_seconds):
    """Every rank of the eight sees all of their tokens once, whatever they chose."""
    job = job_of(dispatcher="all-gather")
    block = next(b for b in job.model.blocks if b.experts)
    assert expert_s(job, block, choice_of([layout(4, 2, 4)]))[0] == 2 * (2.0 * TOKENS / 4 * HIDDEN * 8)


def test_one_copy_a_device_is_less_than_one_an_expert():
    """With eight choices on four ranks copies to devices are at most half of those to experts."""
    few, many = (routed(job_of(), experts_of(job_of()), choice_of([layout(1, 1, 4)])).own_tokens for _ in range(2))
    assert few == many
    jobs = [job_of(dispatcher=way) for way in DISPATCHERS]
    times = [expert_s(j, j.model.blocks[0], choice_of([layout(1, 1, 8)]))[0] for j in jobs]
    assert all(t > 0 for t in times)
    alone = [expert_s(j, j.model.blocks[0], choice_of([layout(1, 1, 1)]))[0] for j in jobs]
    assert alone == [0.0] * len(DISPATCHERS)


def test_the_default_cut_of_experts_is_the_frameworks():
    assert expert_cut(False, 8, 64, 8) == 1
    assert expert_cut(True, 8, 64, 8) == 8
    assert expert_cut(True, 8, 16, 8) == 2, "only so many ranks are left for each of the eight"
    assert expert_cut(True, 8, 8, 8) == 1
    assert get_framework("megatron-lm").cuts_experts
    assert not get_framework("megatron-bridge").cuts_experts


def test_a_popular_expert_fills_its_rank():
    """Half of the assignments go to the first expert: of two ranks the first has 0.5 + 3/7 x 0.5 of them."""
    loads = Popularity(shares=(0.5, *([0.5 / 7] * 7)))
    even, uneven = job_of(), job_of(expert_loads=loads)
    choice = choice_of([layout(1, 1, 2)])
    ratio = routed(uneven, experts_of(uneven), choice).rows[0] / routed(even, experts_of(even), choice).rows[0]
    assert ratio == pytest.approx(2 * (0.5 + 3 * 0.5 / 7))
    whole = choice_of([layout(1, 1, 1)])
    assert routed(uneven, experts_of(uneven), whole).rows[0] == 8192, "one rank has all experts, however they are used"


def step_s(loads=None, overlap="", **more):
    """Of eight ranks that share eight experts out, with long micro-batches: work enough to gather beside."""
    job = job_of(devices=8, expert_loads=loads, expert_overlap=overlap, **more)
    chosen = TrainingLayout(dp=8, ep=8, micro_batch=4)
    return float(step_of(job, columns_of([chosen])).time_s[0])


def test_sparse_materialisation_gains_by_loads_alone():
    """Users see it: with popular experts a step is shorter with it, and with even loads not by a digit."""
    skewed, gathered = Popularity(exponent=1.0), "sparse-materialisation"
    assert step_s(skewed) > 1.2 * step_s()
    assert step_s(skewed, gathered) < 0.95 * step_s(skewed)
    assert step_s(None, gathered) == step_s()
    assert step_s(Popularity(exponent=0.5), gathered) < step_s(Popularity(exponent=0.5))


def test_loads_in_a_list_stand_in_its_order():
    """Two popular experts on one rank are worse than on two, whatever the law of a list would say."""
    together = Popularity(shares=(0.3, 0.3, *([0.4 / 6] * 6)))
    apart = Popularity(shares=(0.3, *([0.4 / 6] * 3), 0.3, *([0.4 / 6] * 3)))
    choice = choice_of([layout(1, 1, 4)])
    rows = [routed(j, experts_of(j), choice).rows[0] for j in (job_of(expert_loads=x) for x in (together, apart))]
    assert rows[0] == pytest.approx(4 * 8192 * 0.6)
    assert rows[1] == pytest.approx(4 * 8192 * (0.3 + 0.4 / 6))


def test_units_of_parts_stay_positive():
    job = job_of(devices=8, expert_loads=Popularity(exponent=2.0), expert_overlap="sparse-materialisation")
    found = step_of(job, columns_of([TrainingLayout(dp=8, ep=8, micro_batch=4)]))
    assert all((seconds >= 0).all() for seconds in found.parts.values())


@pytest.mark.parametrize(("framework", "result_bytes"), [("megatron-lm", 8.0), ("nemo", 4.0), ("fsdp", 2.0)])
def test_weight_gradients_are_products_of_their_own(framework, result_bytes):
    """n x k sums of few rows are bound by memory: rows (n + k) 2 bytes read, n k sums read and written as kept.

    Megatron adds in FP32 (4 + 4 bytes), its recipes of NeMo in 16 bits (2 + 2); autograd's product writes 2.
    """
    device = get_device("h100-sxm")
    job = replace(job_of(), framework=get_framework(framework, device, "bf16"))
    rows, n, k = (np.array([[size]]) for size in (64, 16384, 8192))
    (found,) = grouped_times(job, rows, n, k, np.array([[1]]))
    read = 2 * 64 * (16384 + 8192)
    weight_s = (read + result_bytes * 16384 * 8192) / device.memory_bandwidth_bytes_per_s
    assert 1.0 < found.weight_gradient_s[0] / weight_s < 1.35
    forward_s = (read + 2 * 16384 * 8192) / device.memory_bandwidth_bytes_per_s
    assert 0.9 < found.forward_s[0] / forward_s < 1.4, "reads the weights in 16 bits"


def test_only_the_published_recipe_keeps_layers_wide():
    """NVFP4 as published leaves 16 % of the layers in BF16; Megatron's flag for it is off unless somebody sets it."""
    device = get_device("gb200")
    plain, kept_wide = get_framework("megatron-lm", device, "nvfp4"), get_framework("pytorch", device, "nvfp4")
    job = replace(job_of(), recipe=get_recipe("nvfp4"), framework=plain)
    assert (job.wide_layers_frac, replace(job, framework=kept_wide).wide_layers_frac) == (0.0, 0.16)
    size = [np.array([[x]]) for x in (8192, 16384, 8192, 1)]
    (narrow,) = grouped_times(job, *size)
    (mixed,) = grouped_times(replace(job, framework=replace(plain, keeps_wide_layers=True)), *size)
    (wide,) = grouped_times(replace(job, recipe=get_recipe("bf16")), *size)
    assert mixed.forward_s[0] == pytest.approx(0.84 * narrow.forward_s[0] + 0.16 * wide.forward_s[0], rel=1e-6)
