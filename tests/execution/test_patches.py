"""Pictures in patches: bytes and work by counting, and times that meet at one device."""

from dataclasses import replace

import pytest
from battery import over
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.catalog.devices import get_device
from orrery.catalog.diffusion import diffusion_names, get_diffusion
from orrery.execution.diffusion import Job, pass_work, seconds
from orrery.execution.generation import constants_of, generate
from orrery.execution.patched import JOIN_PASSES, patched_work, shared_of
from orrery.execution.patches import PATCHES
from orrery.models.diffusion import Block, Convolution
from orrery.scenario.patches import PatchGain

A100 = get_device("a100-sxm-80gb")
SDXL = get_diffusion("stable-diffusion-xl-base-1.0")
TINY = replace(
    SDXL,
    blocks=(Block(kind="cross", count=1, width=16, num_heads=2, ffn_size=64, is_gated=True, shrink=2),),
    convolutions=(Convolution(num_inputs=4, num_outputs=16),),
)


def job(model=TINY, side=512, **changes):
    found = Job(model=model, device=A100, height=side, width=side, num_frames=1, num_inference_steps=10, batch=1)
    return replace(found, **changes)


def test_a_patchs_caches_and_borders_are_counted():
    """64 x 64 latents over 4: 16 rows of 64, and 8 of 32 where attention sees every second; two guided passes."""
    shared = shared_of(job(patches=4))
    assert shared.cache_bytes == 2 * 16 * (8 * 32) * 2 * 2
    assert shared.border_bytes == 2 * 64 * 4 * 2 * 2
    assert (shared.num_attentions, shared.num_convolutions) == (1, 1)


def test_everybody_receives_three_patches_or_one_and_a_half():
    shared = shared_of(job(patches=4))
    whole, parts = (PATCHES.get(c).rule(shared, PATCHES.get(c).knobs()) for c in ("whole", "neighbour"))
    assert whole.received_bytes == 3 * (shared.cache_bytes + shared.border_bytes)
    assert parts.received_bytes == 1.5 * shared.cache_bytes + 3 * shared.border_bytes
    assert (whole.read_ratio, parts.read_ratio) == (4, pytest.approx(1.6))
    assert (whole.kept_ratio, parts.kept_ratio) == (4, 3)


def test_two_devices_receive_as_much_from_a_neighbour_as_from_all():
    shared = shared_of(job(patches=2))
    assert len({PATCHES.get(c).rule(shared, PATCHES.get(c).knobs()).received_bytes for c in PATCHES.words}) == 1


def test_work_of_a_patch_by_hand():
    """Own rows are multiplied; attention sees 1.6 patches of 256 tokens, and the text of 77."""
    one = pass_work(job())
    products = 2 * 2 * (256 * (6 * 16 * 16 + 3 * 16 * 64) + 77 * 2 * 16 * 2048)
    ours = replace(TINY, blocks=(replace(TINY.blocks[0], cross_width=2048),))
    work = pass_work(job(ours, patches=4), 1.6)
    assert work.product_flops == products + 2 * 2 * (16 * 64) * 9 * 4 * 16
    assert work.plain_flops == 4 * 8 * (2 * 2) * 256 * (410 + 77)
    assert one.plain_flops == 4 * 8 * (2 * 2) * 1024 * (1024 + 77)


def test_first_passes_wait_and_later_ones_hide_the_exchange():
    large = job(SDXL, 2048, patches=4, num_inference_steps=50)
    work, constants = patched_work(large), constants_of(A100).constants
    assert work.num_first == 5
    assert patched_work(replace(large, num_inference_steps=3)).num_first == 3
    assert work.first.exchange_s > work.later.beside_s > 0
    assert seconds(work.later, A100, constants).exchange_s == 0
    slow = replace(work.later, beside_s=1.0)
    found = seconds(slow, A100, constants)
    assert found.device_s == pytest.approx(1.0 / constants["exchange_frac"])
    joined = work.later.stream_bytes - pass_work(large, work.exchanged.read_ratio).stream_bytes
    assert joined == pytest.approx(JOIN_PASSES * 4 * work.cache_bytes)


def test_a_replayed_graph_costs_the_host_nothing():
    small = job(SDXL, 512, patches=4)
    eager, replayed = generate(small), generate(replace(small, has_graphs=True))
    assert eager.stages[2].bound_by == "host" != replayed.stages[2].bound_by
    assert replayed.stages[0].time_s == eager.stages[0].time_s
    assert replayed.latency_s < eager.latency_s


def test_reading_less_is_faster_and_reading_everything_is_no_gain():
    large = job(SDXL, 3840, patches=8, patch_context="neighbour")
    times = [generate(replace(large, patch_read_frac=frac)).latency_s for frac in (0.0, 0.3, 1.0)]
    assert times == sorted(times)
    assert times[-1] < generate(replace(large, patch_context="whole")).latency_s


def test_a_large_picture_alone_takes_what_distrifusion_measured():
    """140 s for 50 guided steps at 3840 x 3840 on one A100 (arXiv 2402.19481, as recalled)."""
    assert generate(job(SDXL, 3840, num_inference_steps=50)).latency_s == pytest.approx(140.0, rel=0.1)


SOFTMAX = [n for n in diffusion_names() if all(b.kind != "linear" for b in get_diffusion(n).blocks)]


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_never_faster_than_so_many_devices_and_the_attention_left_out(data):
    model = get_diffusion(data.draw(st.sampled_from(SOFTMAX)))
    drawn = Job(
        model=model,
        device=get_device(data.draw(st.sampled_from(["h100-sxm", "a100-sxm-80gb", "l40s"]))),
        height=256 * data.draw(st.integers(1, 8)),
        width=256 * data.draw(st.integers(1, 8)),
        num_frames=1,
        num_inference_steps=data.draw(st.integers(1, 30)),
        batch=data.draw(st.integers(1, 3)),
        patches=data.draw(st.integers(2, 8)),
        patch_context=data.draw(st.sampled_from(PATCHES.words)),
        has_graphs=True,
    )
    gain = PatchGain(job=drawn, many=generate(drawn))
    assert 0 < gain.speedup < 1.1 * gain.most_denoise_speedup  # small products fill other waves
    assert gain.denoise_speedup < 1.1 * gain.most_denoise_speedup
    assert 0 <= gain.attention_left_out_frac < 1
    assert gain.attention_left_out_frac == 0 or drawn.patch_context == "neighbour"


@over(PATCHES.words)
def test_one_patch_is_the_baseline(context):
    assert generate(job(SDXL, patch_context=context)).latency_s == generate(job(SDXL)).latency_s


def test_attention_to_the_text_has_nothing_to_exchange():
    """Of a cross block the attention to the image alone counts; of a joint one the only one there is."""
    cross = shared_of(job(patches=4))
    assert cross.num_attentions == 1
    joint = replace(TINY, blocks=(replace(TINY.blocks[0], kind="joint", num_dual=0, shrink=2, count=3),))
    found = shared_of(job(joint, patches=4))
    assert found.num_attentions == 3
    assert found.cache_bytes == 3 * cross.cache_bytes
