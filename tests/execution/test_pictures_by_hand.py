"""Every kind of block of a picture's network by hand, alone and dealt out; pixels, prompts, memory and power."""

from dataclasses import replace
from math import ceil

import pytest

from orrery import kernels, network
from orrery.catalog.devices import get_device
from orrery.catalog.diffusion import get_diffusion
from orrery.execution.diffusion import (
    Job,
    Seconds,
    Work,
    decoder_work,
    encoder_work,
    pass_work,
    seconds,
)
from orrery.execution.generation import bound_by, constants_of, generate, mean_power_w, memory_bytes
from orrery.kernels import energy
from orrery.kernels.energy.steps import peak_of
from orrery.kernels.ops import Gemm
from orrery.models.diffusion import Block, Convolution

H100 = get_device("h100-sxm")
FLUX = get_diffusion("flux.1-dev")
IMAGE, TEXT = 4096, 512
"""Tokens of a picture of 1024 x 1024, and of its prompt."""


def job(*blocks, model=FLUX, **changes):
    found = Job(
        model=replace(model, blocks=blocks),
        device=H100,
        height=1024,
        width=1024,
        num_frames=1,
        num_inference_steps=10,
        batch=1,
    )
    return replace(found, **changes)


def block(kind="single", count=3, **more):
    return Block(kind=kind, count=count, width=64, num_heads=2, ffn_size=256, **more)


@pytest.mark.parametrize(
    ("made", "passes", "operators"),
    [
        (block(), 22 + 2 * 4, 24),
        (block(is_gated=True), 22 + 3 * 4, 24),
        (block(has_qk_norm=True), 30 + 24, 24 + 12),
        (block(has_rope=True), 30 + 40, 24 + 16),
        (block(has_fp32_norms=True), 30 + 36, 24 + 6),
        (block("joint"), 30 + 10, 48 + 6),
        (block("joint", has_qk_norm=True, has_rope=True), 40 + 24 + 40, 54 + 24 + 16),
        (block("cross"), 30 + 6, 24 + 8),
        (block("linear"), 22 + 19 * 4 + 6 + 36, 24 + 8 + 20),
    ],
)
def test_passes_and_operators_of_every_kind_of_block(made, passes, operators):
    """Text is in the stream of joint and single blocks alone; 60 operators stand around all blocks."""
    work = pass_work(job(made))
    tokens = IMAGE + (TEXT if made.kind in ("single", "joint") else 0)
    assert work.stream_bytes == 3 * passes * tokens * 64 * 2
    assert work.num_operators == 3 * operators + 60
    assert (work.num_exchanges, work.num_hops, work.exchange_s, work.ring_s, work.beside_s) == (0, 0, 0, 0, 0)


def test_second_attentions_over_the_image_alone():
    """Two of three joint blocks have one: 22 passes, 24 operators and 4096 x 4096 pairs more."""
    plain, dual = (pass_work(job(block("joint", num_dual=n))) for n in (0, 2))
    assert dual.stream_bytes - plain.stream_bytes == 2 * 22 * (IMAGE + TEXT) * 64 * 2
    assert dual.num_operators - plain.num_operators == 2 * 24
    assert dual.plain_flops - plain.plain_flops == 2 * 4 * IMAGE**2 * 64


def test_heads_are_padded_and_waves_are_whole():
    """Heads of 40 count as 64; 36 tiles of 128 rows and 3 heads fill 108 of 132 units; 16 sequences take 14 waves."""
    wide = Block(kind="single", count=1, width=120, num_heads=3, ffn_size=240)
    one, many = pass_work(job(wide)), pass_work(job(wide, batch=16))
    pairs = 3 * (IMAGE + TEXT) ** 2
    assert one.plain_flops == 4 * 40 * pairs
    assert one.score_pairs == pytest.approx(pairs * 132 / 108)
    assert one.score_flops == pytest.approx(4 * 64 * pairs * 132 / 108)
    assert many.score_pairs == pytest.approx(16 * pairs * ceil(16 * 108 / 132) / (16 * 108 / 132))


def test_attention_to_the_text_beside_attention_to_the_image():
    work = pass_work(job(block("cross")))
    assert work.plain_flops == 3 * 4 * 64 * IMAGE * (IMAGE + TEXT)
    # 32 tiles of two heads fill 64 of 132 units in both
    assert work.score_pairs == pytest.approx(3 * 2 * IMAGE * (IMAGE + TEXT) * 132 / 64)


def sent_s(kind, ranks, message_bytes):
    work = network.Collective(kind=kind, num_devices=ranks, message_bytes=float(message_bytes), stride=1)
    return float(network.predict(work, H100).time_s)


def test_tokens_dealt_out_over_heads_and_a_ring():
    """Two by two devices have 1024 tokens and 128 of the text each; a head sees 2304 of 4608, twice."""
    work = pass_work(job(block("joint"), ulysses=2, ring=2))
    part = 2304 * 32 * 2
    assert work.num_exchanges == 4 * 3
    assert work.exchange_s == pytest.approx(12 * sent_s("all_to_all", 2, part))
    assert work.num_hops == 2 * 3
    assert work.ring_s == pytest.approx(3 * sent_s("send_recv", 2, 2 * part))
    assert work.plain_flops == 3 * 4 * 32 * 2304**2 * 2
    assert work.score_pairs == pytest.approx(3 * 2304**2 * 2 * 132 / 18)
    merged = 16 * part + 14 * 2 * part * 2
    assert work.stream_bytes == 3 * 40 * (1024 + 128) * 64 * 2 + 3 * merged
    rows = [(1024, 6 * 64 * 64 + 6 * 64 * 64), (128, 12 * 64 * 64)]  # 4 of 64 x 64, up to 256 and down
    assert work.product_flops == 3 * 2 * sum(m * weights for m, weights in rows)
    four = pass_work(job(block("joint"), ring=4))
    assert (four.num_exchanges, four.num_hops) == (0, 12)
    part = 1152 * 2 * 32 * 2
    assert four.ring_s == pytest.approx(3 * 3 * sent_s("send_recv", 2, 2 * part))
    assert four.stream_bytes == 3 * 40 * (1024 + 128) * 64 * 2 + 3 * 14 * 2 * part * 4


def test_text_is_not_dealt_out_in_attention_to_it():
    """Each of four devices asks with its own 1024 tokens, all heads, in one go."""
    work = pass_work(job(block("cross"), ring=4))
    image = 2 * 1024**2 * 4
    assert work.plain_flops == 3 * 4 * 32 * (image + 2 * 1024 * 512)
    assert work.num_hops == 4 * 3
    linear = pass_work(job(block("linear"), ring=4))
    assert (linear.num_exchanges, linear.num_hops) == (3, 0)
    assert pass_work(job(block("linear"))).num_exchanges == 0


def test_products_take_what_the_kernels_say():
    work = pass_work(job(block()))
    sizes = [(64, 64, 4), (256, 64, 1), (64, 256, 1)]
    each = [
        n * float(kernels.predict(Gemm(m=4608, n=a, k=b, format="bf16", quantises_input=False), H100).time_s)
        for a, b, n in sizes
    ]
    assert work.products_s == pytest.approx(3 * sum(each), rel=1e-12)


def test_convolutions_of_a_u_net():
    """At half the side a quarter of the tokens; the 3 x 3 one streams nine times its output and has four operators."""
    plain, sequences = job(block(), batch=5), 5
    convolutions = (
        Convolution(num_inputs=4, num_outputs=16, shrink=2),
        Convolution(num_inputs=8, num_outputs=2, kernel=1),
    )
    work = pass_work(replace(plain, model=replace(plain.model, convolutions=convolutions)))
    before = pass_work(plain)
    assert work.num_operators - before.num_operators == 4 + 1
    assert work.stream_bytes - before.stream_bytes == 9 * sequences * 1024 * 16 * 2
    assert work.product_flops - before.product_flops == 2 * sequences * (1024 * 16 * 36 + 4096 * 2 * 8)


def test_own_tokens_are_even_shares_or_whole_rows():
    """64 x 64 tokens: 1366 of three devices; in patches 22 rows of 64; at half the side 11 rows of 32."""
    assert [job(block(), ring=3).own_tokens(n) for n in (1, 2)] == [1366, 342]
    assert [job(block(), patches=3).own_tokens(n) for n in (1, 2)] == [22 * 64, 11 * 32]
    assert job(block(), ulysses=2, ring=3, patches=5).num_devices == 30


def test_a_job_says_nothing_of_what_it_does_not_do():
    plain = job(block())
    assert (plain.ulysses, plain.ring, plain.patches, plain.guides, plain.has_graphs) == (1, 1, 1, True, False)
    assert (plain.patch_read_frac, plain.patch_warmup_steps) == (0.3, 4)
    assert not any(getattr(Work(), name) for name in Work.__slots__)


# --- both ends


def test_pixels_are_decoded_on_one_device():
    """Twice the multiply-adds; nine passes in, nine out, in 16 bits; 60 operators a level; tiles overlap."""
    one = job(block(), batch=3)
    macs, elements = FLUX.decoder.work(*FLUX.latent_grid(1024, 1024, 1))
    found = decoder_work(one)
    assert found.convolution_flops == 3 * 2 * macs
    assert found.stream_bytes == 3 * 2 * 9 * elements * 2
    assert found.num_operators == 60 * len(FLUX.decoder.levels)
    tiled = replace(FLUX.decoder, tile=512, stride=256)
    again = decoder_work(replace(one, model=replace(one.model, decoder=tiled)))
    assert again.convolution_flops / found.convolution_flops == pytest.approx(tiled.overlap(1024, 1024))
    assert again.stream_bytes / found.stream_bytes == pytest.approx(tiled.overlap(1024, 1024))
    assert tiled.overlap(1024, 1024) > 1


def test_prompts_are_read_once_with_an_empty_one_where_the_pipeline_guides():
    encoders = FLUX.encoders
    flops = 2 * 3 * sum(e.num_parameters * e.num_tokens for e in encoders)
    alone = encoder_work(job(block(), batch=3, guides=False))
    assert alone.product_flops == flops
    assert alone.products_s == pytest.approx(flops / peak_of(H100, "bf16"))
    assert alone.stream_bytes == 2 * sum(e.num_parameters for e in encoders)
    assert alone.num_operators == 30 * sum(e.num_layers for e in encoders)
    guided = encoder_work(job(block(), batch=3, model=replace(FLUX, guidance="batched")))
    assert (guided.product_flops, guided.stream_bytes) == (2 * flops, alone.stream_bytes)
    assert guided.num_operators == 2 * alone.num_operators


# --- seconds, watts and bytes


@pytest.mark.parametrize(
    ("causes", "says"),
    [
        ((3, 1, 1, 1, 1, 8), "host"),
        ((3, 1, 1, 1, 1, 7), "products"),
        ((1, 3, 1, 1, 1, 0), "attention"),
        ((1, 1, 3, 1, 1, 0), "element-wise operators"),
        ((1, 1, 1, 3, 1, 0), "network"),
        ((1, 1, 1, 1, 3, 0), "convolutions"),
    ],
)
def test_what_binds_a_stage(causes, says):
    assert bound_by(Seconds(**dict(zip(Seconds.__slots__, causes, strict=True)))) == says


def test_stages_power_and_work_of_a_batch():
    """Prompts and pixels are one device's, passes everybody's; power at what all of them do on average."""
    made = job(block("joint"), ulysses=2, ring=2)
    found, constants = generate(made), constants_of(H100).constants
    works = [(encoder_work(made), 1, 1), (pass_work(made), 10, 1), (decoder_work(made), 1, 4)]
    matrix_s = memory_s = busy_s = flops = 0.0
    for (work, count, spread), stage in zip(works, found.stages, strict=True):
        parts = seconds(work, H100, constants)
        assert stage.time_s == pytest.approx(count * float(parts.time_s), rel=1e-12)
        done = work.product_flops + work.plain_flops + work.convolution_flops
        matrix, memory = energy.weighted_s(H100, "bf16", done, work.stream_bytes)
        matrix_s += count / spread * float(matrix)
        memory_s += count / spread * float(memory)
        busy_s += count / spread * float(parts.device_s)
        flops += count / spread * done
    latency_s = sum(s.time_s for s in found.stages)
    assert found.latency_s == pytest.approx(latency_s)
    assert found.flops == pytest.approx(flops)
    assert found.power_w == pytest.approx(4 * mean_power_w(H100, matrix_s, memory_s, busy_s, latency_s), rel=1e-12)
    assert found.energy_j == pytest.approx(found.power_w * latency_s)
    assert found.bound_by == max(found.stages, key=lambda s: s.time_s).bound_by


def test_a_device_that_waits_half_the_time_is_idle_for_it():
    law = energy.step_law(H100)
    busy_w = float(law.power_w(0.5, 0.25, 1.0))
    assert mean_power_w(H100, 0.5, 0.25, 1.0, 1.0) == pytest.approx(busy_w)
    assert mean_power_w(H100, 0.5, 0.25, 1.0, 4.0) == pytest.approx(law.idle_w + (busy_w - law.idle_w) / 4)
    assert mean_power_w(H100, 0.5, 0.25, 9.0, 1.0) == pytest.approx(float(law.power_w(0.5, 0.25, 1.0)))


def test_bytes_of_a_device():
    """All networks stay; a pass has eight widths and the inner one, pixels four copies of the last level and 12 bytes
    for the picture that is shown."""
    made = job(block(), batch=4, ring=2)
    weights, activations = memory_bytes(made)
    model = made.model
    assert weights == 2 * (
        model.transformer_weights + model.decoder_weights + sum(e.num_parameters for e in model.encoders)
    )
    last = FLUX.decoder.levels[-1].width
    pixels = 4 * 1024 * 1024
    assert activations == 4 * pixels * last * 2 + 12 * pixels
    wide = Block(kind="single", count=1, width=2**20, num_heads=2, ffn_size=2**22, shrink=2)
    assert memory_bytes(job(block(), wide, batch=4, ring=2))[1] == 4 * (IMAGE / 2 + TEXT) * 12 * 2**20 / 4 * 2
    tiled = replace(made, model=replace(model, decoder=replace(FLUX.decoder, tile=256, stride=128)))
    assert memory_bytes(tiled)[1] == 4 * 256**2 * last * 2 + 12 * pixels
    small = replace(tiled, height=128, width=128)
    assert memory_bytes(small)[1] == 4 * 128**2 * last * 2 + 12 * 4 * 128**2
    convolution = Convolution(num_inputs=1, num_outputs=2**20, shrink=4)
    u_net = replace(made, model=replace(model, convolutions=(convolution,)))
    assert memory_bytes(u_net)[1] == 4 * (IMAGE / 2 + TEXT) * 8 * 2**20 / 16 * 2
