"""Processors on the logic dies of a memory: shares by hand, what stays on the device, and where nothing is gained."""

from dataclasses import replace

import numpy as np
import pytest

from orrery import estimate, kernels
from orrery.base.errors import FactError
from orrery.catalog.device_file import read_device
from orrery.catalog.devices import FOLDER, get_device
from orrery.hardware.roofs import Roofs
from orrery.kernels.near_memory import in_banks, placed
from orrery.kernels.ops import AttentionDecode, Elementwise, Gemm, MoE, Timing

DUPLEX = get_device("h100-duplex")
PLAIN = replace(DUPLEX, near_memory=None)
NEAR = Roofs(flops_per_s=100.0, bytes_per_s=40.0)
EXPERTS = MoE(tokens=32, hidden_size=4096, ffn_size=14336, num_experts=8, experts_per_token=2, format="fp16", tp=4)
ATTENTION = AttentionDecode(
    batch=32, context_tokens=4096, num_heads=8, num_kv_heads=2, head_size=128, format="fp16", kv_format="fp16"
)


def timing(flops, moved, time_s, overhead_s, compute_s, memory_s):
    values = (time_s, compute_s, memory_s, overhead_s, flops, moved)
    names = ("time_s", "compute_s", "memory_s", "overhead_s", "flops", "bytes")
    return Timing(**{name: np.array([value]) for name, value in zip(names, values, strict=True)})


def product(m=1, n=4096, k=4096):
    return Gemm(m=m, n=n, k=k, format="fp16", quantises_input=False)


def test_experts_and_attention_are_dealt_out_by_hand():
    # own processor: 10 bytes/s and 1000 operations/s; 400 bytes, 200 operations: 40 s here, 10 s there, 8 s together
    one = timing(200.0, 400.0, 55.0, 5.0, 0.2, 40.0)
    for op in (EXPERTS, ATTENTION):
        found = placed(op, one, NEAR)
        assert found.time_s[0] == pytest.approx(5.0 + 50.0 * 8 / 40)  # as far above the roofs as the kernel was
        assert found.memory_s[0] == pytest.approx(8.0)
        assert (found.overhead_s[0], found.flops[0], found.bytes[0]) == (5.0, 200.0, 400.0)


def test_a_product_goes_to_the_faster_processor():
    narrow = timing(200.0, 400.0, 55.0, 5.0, 0.2, 40.0)
    assert placed(product(), narrow, NEAR).time_s[0] == pytest.approx(5.0 + 50.0 * 10 / 40)
    wide = timing(40_000.0, 400.0, 55.0, 5.0, 40.0, 40.0)  # 400 s of arithmetic there
    assert placed(product(), wide, NEAR).time_s[0] == 55.0


def test_nothing_to_do_takes_no_longer():
    none = timing(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert placed(EXPERTS, none, NEAR).time_s[0] == placed(product(), none, NEAR).time_s[0] == 0.0


def test_element_wise_work_and_large_products_stay_on_the_device():
    for op in (Elementwise(kind="norm", tokens=64, width=4096), product(m=8192)):
        assert kernels.predict(op, DUPLEX).time_s == kernels.predict(op, PLAIN).time_s


@pytest.mark.parametrize("op", [EXPERTS, ATTENTION, product()])
def test_bound_work_is_faster_and_with_a_slow_processor_it_is_the_device(op):
    here, there = kernels.predict(op, PLAIN), kernels.predict(op, DUPLEX)
    assert np.all(there.time_s < here.time_s)
    assert np.all(there.time_s >= np.maximum(there.compute_s, there.memory_s) * 0.5)
    slow = replace(DUPLEX, near_memory=Roofs(flops_per_s=1e3, bytes_per_s=1e3))
    assert kernels.predict(op, slow).time_s == pytest.approx(here.time_s, rel=1e-6)


def without(folder):
    """The device's file without its processor near the memory."""
    text = (FOLDER / "h100-duplex.toml").read_text(encoding="utf-8")
    path = folder / "without.toml"
    path.write_text("\n".join(line for line in text.splitlines() if not line.startswith("near_memory")))
    return path


def test_decode_gains_and_a_long_prompt_alone_does_not(tmp_path):
    given = {"model": "mixtral-8x7b", "tp": 4, "weights": "fp16", "batch": 32, "input_tokens": 2048}
    short, long = (
        [estimate(**given, device=d, output_tokens=n).estimate for d in (str(without(tmp_path)), "h100-duplex")]
        for n in (512, 1)
    )
    assert short[0].tpot_s / short[1].tpot_s > 1.5
    assert long[1].ttft_s > 0.85 * long[0].ttft_s


def test_a_rate_without_a_bandwidth_is_refused(tmp_path):
    text = (FOLDER / "h100-duplex.toml").read_text(encoding="utf-8")
    path = tmp_path / "half.toml"
    path.write_text("\n".join(x for x in text.splitlines() if not x.startswith("near_memory_bandwidth")))
    with pytest.raises(FactError, match="write both near_memory facts"):
        read_device(path)


PIM = get_device("pim-gpt")
BANKS = PIM.near_memory


def test_banks_take_every_product_by_hand():
    """400 bytes at 40 a second against 200 operations at 100: 10 s, whatever the chip beside them would take."""
    found = in_banks(product(), timing(200.0, 400.0, 55.0, 5.0, 0.2, 40.0), NEAR)
    assert (found.time_s[0], found.compute_s[0], found.memory_s[0], found.overhead_s[0]) == (10.0, 2.0, 10.0, 0.0)


def test_the_rates_of_the_banks_are_those_of_a_row_that_is_opened_read_and_closed():
    """128 banks read 2 KiB in 64 ns and wait 24 more; 16 multiply-adds go with each 32 bytes."""
    assert BANKS.bytes_per_s == pytest.approx(128 * 2048 / 88e-9, rel=1e-3)
    assert BANKS.flops_per_s == BANKS.bytes_per_s


def test_every_row_passes_the_weights_anew_in_banks():
    one, four = (kernels.predict(product(m=m), PIM) for m in (1, 4))
    assert four.time_s == pytest.approx(4 * one.time_s, rel=1e-3)
    assert one.time_s == pytest.approx(2 * 4096 * 4096 / BANKS.flops_per_s, rel=1e-2)


def test_norms_stay_beside_the_banks_and_a_memory_without_them_is_a_plain_device():
    op, bare = Elementwise(kind="norm", tokens=64, width=4096), replace(PIM, near_memory=None)
    assert kernels.predict(op, PIM).time_s == kernels.predict(op, bare).time_s
    assert kernels.predict(product(), bare).time_s > 10 * kernels.predict(product(), PIM).time_s


def served(device, concurrency):
    found = estimate(
        model="gpt3-1.3b", device=device, weights="fp16", input_tokens=1, output_tokens=255, concurrency=concurrency
    )
    return found.estimate.output_tokens_per_s, found.estimate.tpot_s


def test_banks_win_one_request_and_lose_a_batch_and_one_of_sixteen_loses_both():
    few = replace(PIM, near_memory=Roofs(flops_per_s=BANKS.flops_per_s / 16, bytes_per_s=BANKS.bytes_per_s / 16))
    assert served("pim-gpt", 1)[0] > 4 * served("t4", 1)[0]
    assert served("pim-gpt", 64)[0] < served("t4", 64)[0]
    slow, fast = (kernels.predict(product(), device).time_s for device in (few, get_device("t4")))
    assert slow > fast


def test_a_pim_device_states_its_banks(tmp_path):
    lines = (FOLDER / "pim-gpt.toml").read_text().splitlines()
    file = tmp_path / "bare.toml"
    file.write_text("\n".join(line for line in lines if not line.startswith("near_memory")))
    with pytest.raises(FactError, match="kind pim multiplies at the memory's banks"):
        read_device(file)
