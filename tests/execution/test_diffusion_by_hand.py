"""A batch of pictures by hand: work, seconds, degrees, power, and the cases in which a cost vanishes."""

from dataclasses import replace

import pytest
from battery import over

from orrery.catalog.devices import get_device
from orrery.catalog.diffusion import diffusion_names, get_diffusion
from orrery.execution.diffusion import Job, Work, clock_units, decoder_work, own_text, pass_work, seconds
from orrery.execution.generation import generate, mean_power_w
from orrery.kernels.energy.steps import peak_of
from orrery.models.diffusion import Block

H100 = get_device("h100-sxm")
ONES = {
    "product_frac": 0.5,
    "attention_flops_per_clock": 1000.0,
    "exponential_flops": 10.0,
    "stream_bytes_per_clock": 2.0,
    "exchange_frac": 0.5,
    "convolution_frac": 0.25,
    "operator_s": 1e-5,
    "exchange_operator_s": 1e-4,
    "hop_operator_s": 1e-3,
}


def job(name="flux.1-dev", **changes):
    model = get_diffusion(name)
    sizes = {"height": model.height, "width": model.width, "num_frames": model.num_frames}
    found = Job(model=model, device=H100, num_inference_steps=model.num_inference_steps, batch=1, **sizes)
    return replace(found, **changes)


def test_work_of_one_block_by_hand():
    """Width 64 in two heads of 32, 64 x 64 tokens and 512 of text: 36 x 36 tiles of 128 x 128, on 132 units."""
    block = Block(kind="single", count=3, width=64, num_heads=2, ffn_size=256)
    work = pass_work(job(model=replace(get_diffusion("flux.1-dev"), blocks=(block,))))
    tokens = 4096 + 512
    assert work.product_flops == 3 * 2 * tokens * 12 * 64 * 64
    assert work.plain_flops == 3 * 4 * tokens**2 * 64
    assert work.score_pairs == pytest.approx(3 * 2 * tokens**2 * 132 / 72)  # one wave of which 72 units have work
    assert work.stream_bytes == 3 * (22 + 2 * 4) * tokens * 64 * 2
    assert (work.num_exchanges, work.num_hops, work.exchange_s, work.ring_s) == (0, 0, 0, 0)


def test_linear_attention_streams_more_and_multiplies_less():
    """Width 64: 22 + 36 + 6 passes and 19 of a feed-forward part four times as wide, over 32 x 32 tokens."""
    block = Block(kind="linear", count=1, width=64, num_heads=2, ffn_size=256, is_gated=True)
    sana = replace(get_diffusion("sana_1600m"), blocks=(block,))
    work = pass_work(job("sana_1600m", model=sana, guides=False))
    assert work.stream_bytes == (22 + 36 + 6 + 19 * 4) * 1024 * 64 * 2
    assert work.plain_flops == 4 * 1024 * 300 * 64  # to the text alone
    assert work.num_operators == 24 + 8 + 20 + 60


def test_seconds_by_hand():
    clocks = clock_units(H100)
    work = Work(
        products_s=1.0,
        score_flops=1000.0 * clocks,
        score_pairs=100.0 * clocks,
        stream_bytes=2.0 * clocks,
        exchange_s=1.0,
        ring_s=3.0,
        convolution_flops=peak_of(H100, "bf16"),
        num_operators=1e5,
    )
    found = seconds(work, H100, ONES)
    assert found.products_s == 2.0
    assert found.attention_s == pytest.approx(2.0)
    assert found.stream_s == pytest.approx(1.0)
    assert found.exchange_s == pytest.approx(2.0 + (6.0 - 2.0))  # what the attention does not hide
    assert found.convolution_s == pytest.approx(4.0)
    assert (found.host_s, found.time_s) == (pytest.approx(1.0), pytest.approx(found.device_s))
    assert seconds(replace(work, num_operators=1e7), H100, ONES).time_s == pytest.approx(100.0)


def test_a_hidden_ring_costs_the_host_alone():
    hidden = Work(score_flops=1e18, ring_s=1e-9, num_hops=2)
    found = seconds(hidden, H100, ONES)
    assert found.exchange_s == 0
    assert found.host_s == 2e-3


def test_the_host_starts_operators_exchanges_and_hops():
    work = Work(num_operators=3, num_exchanges=5, num_hops=7)
    assert seconds(work, H100, ONES).host_s == pytest.approx(3e-5 + 5e-4 + 7e-3)


def test_exchanges_beside_the_whole_pass_show_where_they_are_longer():
    """1 + 1 + 1 + 1 s of computing; 3 s beside it at half the rate are 6, of which 2 show."""
    clocks = clock_units(H100)
    work = Work(
        products_s=0.5,
        score_flops=500.0 * clocks,
        score_pairs=50.0 * clocks,
        stream_bytes=2.0 * clocks,
        convolution_flops=peak_of(H100, "bf16") / 4,
        beside_s=3.0,
        exchange_s=1.0,
    )
    found = seconds(work, H100, ONES)
    assert found.exchange_s == pytest.approx(2 + 2)
    assert found.device_s == pytest.approx(4 + 4)


def test_rates_never_pass_the_roofs():
    fast = ONES | {"attention_flops_per_clock": 1e9, "stream_bytes_per_clock": 1e9, "exponential_flops": 0.0}
    work = Work(score_flops=peak_of(H100, "bf16"), stream_bytes=H100.memory_bandwidth_bytes_per_s)
    assert seconds(work, H100, fast).attention_s == 1.0
    assert seconds(work, H100, fast).stream_s == 1.0


def test_degrees_deal_out_tokens_and_attention():
    one = pass_work(job("wan2.1-t2v-14b"))
    for ulysses, ring in ((4, 1), (1, 4), (2, 2)):
        many = pass_work(job("wan2.1-t2v-14b", ulysses=ulysses, ring=ring))
        assert many.product_flops == pytest.approx(one.product_flops / 4, rel=0.01)
        assert many.plain_flops == pytest.approx(one.plain_flops / 4, rel=0.01)
        assert (many.num_exchanges > 0) == (ulysses > 1)
        assert (many.num_hops > 0) == (ring > 1)


def test_text_is_dealt_out_where_it_divides():
    assert [own_text(512, n) for n in (1, 2, 8)] == [512, 256, 64]
    assert [own_text(333, n) for n in (1, 2, 3)] == [333, 333, 111]


def test_guidance_doubles_sequences_or_passes():
    both, alone = job("stable-diffusion-3.5-large"), job("stable-diffusion-3.5-large", guides=False)
    assert (both.num_sequences, both.num_passes, alone.num_sequences) == (2, 28, 1)
    turns = job("wan2.1-t2v-14b")
    assert (turns.num_sequences, turns.num_passes) == (1, 100)
    assert replace(turns, guides=False).num_passes == 50
    assert generate(job("flux.1-dev", guides=False)).latency_s == generate(job("flux.1-dev")).latency_s


def test_steps_add_up():
    few, many = (generate(job(num_inference_steps=n)) for n in (10, 30))
    assert many.stages[1].time_s == pytest.approx(3 * few.stages[1].time_s)
    assert many.stages[2].time_s == few.stages[2].time_s
    assert many.latency_s == pytest.approx(sum(s.time_s for s in many.stages))


def test_power_is_idle_without_work_and_never_above_the_limit():
    assert mean_power_w(H100, 0.0, 0.0, 0.0, 1.0) == H100.idle_power_w
    assert mean_power_w(H100, 9.0, 9.0, 1.0, 1.0) == H100.power_limit_w
    half = mean_power_w(H100, 9.0, 9.0, 0.5, 1.0)
    assert half == pytest.approx((H100.idle_power_w + H100.power_limit_w) / 2)


@over(diffusion_names())
def test_every_pipeline_takes_longer_for_more_and_less_time_on_more_devices(name):
    model = get_diffusion(name)
    small, large = (generate(job(name, batch=n)) for n in (8, 16))
    assert small.latency_s < large.latency_s < 2.2 * small.latency_s
    assert generate(job(name, batch=16, ring=2)).latency_s < large.latency_s
    assert large.latency_s > large.flops / peak_of(H100, "bf16")
    assert model.is_video == (decoder_work(job(name, num_frames=5)).convolution_flops > 0 and model.frame_rate_hz > 0)
