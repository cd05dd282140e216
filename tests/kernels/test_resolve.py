"""Whose constants answer: the nearest in device, format and engine, never a pool before what a device's kin told."""

from dataclasses import replace

import pytest

from orrery.base.cost import Spread
from orrery.base.errors import OutOfRange
from orrery.catalog.devices import get_device
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.resolve import find, held_back_ratio, unhindered

SPREAD = Spread(low_80_ratio=0.9, high_80_ratio=1.1, low_95_ratio=0.8, high_95_ratio=1.25)


def knowing(device: Device, *entries: tuple[str, str, str], op: str = "gemm") -> Device:
    """The device with entries of (format, engine, origin) alone."""
    found = {
        (op, format, engine): Calibration(
            op=op, format=format, engine=engine, origin=origin, constants={}, spread=SPREAD
        )
        for format, engine, origin in entries
    }
    return replace(device, calibrations=found)


@pytest.mark.parametrize(
    ("entries", "format", "engine", "expected"),
    [
        # its own engine on this very device, then another's, then its own engine's on a relative
        ([("fp8", "vllm", "device"), ("fp8", "sglang", "device")], "fp8", "sglang", ("fp8", "sglang")),
        ([("fp8", "vllm", "device"), ("fp8", "sglang", "generation")], "fp8", "sglang", ("fp8", "vllm")),
        ([("fp8", "vllm", "generation"), ("fp8", "sglang", "generation")], "fp8", "sglang", ("fp8", "sglang")),
        # a relative's kernels by another engine say more than one engine's pool over all architectures
        ([("fp8", "vllm", "generation"), ("fp8", "sglang", "any")], "fp8", "sglang", ("fp8", "vllm")),
        # so does a format as wide on the device itself, and no format of another width does
        ([("fp8_block", "aiter", "device"), ("fp8", "vllm", "any")], "fp8", "vllm", ("fp8_block", "aiter")),
        ([("bf16", "vllm", "device"), ("fp8", "vllm", "any")], "fp8", "vllm", ("fp8", "vllm")),
        # one library: 16-bit products of PyTorch are vLLM's, its 8-bit ones are not
        ([("bf16", "tensorrt-llm", "device"), ("bf16", "vllm", "device")], "bf16", "pytorch", ("bf16", "vllm")),
        ([("fp8", "tensorrt-llm", "device"), ("fp8", "vllm", "device")], "fp8", "pytorch", ("fp8", "tensorrt-llm")),
    ],
)
def test_the_nearest_constants_answer(entries, format, engine, expected):
    found = find(knowing(get_device("h100-sxm"), *entries), "gemm", format, engine)
    assert (found.format, found.engine) == expected


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        # the very kernel on the device, or on a relative, before any other kernel
        ([("mxfp4_weight_only", "marlin@vllm", "generation"), ("mxfp4_weight_only", "triton@vllm", "device")], 0),
        # then the kernel in a format as wide, by any caller, before another kernel in the very format
        ([("int4_weight_only", "marlin@sglang", "device"), ("mxfp4_weight_only", "triton-kernels@vllm", "device")], 0),
        # and before what all architectures told of the very kernel
        ([("int4_weight_only", "marlin@sglang", "device"), ("mxfp4_weight_only", "marlin@vllm", "any")], 0),
        # but not the kernel in a format of another width
        ([("mxfp4_weight_only", "triton-kernels@vllm", "device"), ("bf16", "marlin@vllm", "device")], 0),
    ],
)
def test_the_nearest_kernel_of_experts_answers(entries, expected):
    found = find(knowing(get_device("h100-sxm"), *entries, op="moe"), "moe", "mxfp4_weight_only", "marlin@vllm")
    assert (found.format, found.engine) == entries[expected][:2]


def test_pools_of_a_vendors_own_kernels_come_first_on_its_devices():
    entries = [("bf16", "vllm", "any"), ("bf16", "aiter", "any")]
    assert find(knowing(get_device("mi300x"), *entries), "gemm", "bf16", "vllm").engine == "aiter"
    assert find(knowing(get_device("h100-sxm"), *entries), "gemm", "bf16", "vllm").engine == "vllm"


def test_what_is_borrowed_is_wider():
    device = knowing(get_device("h100-sxm"), ("fp8", "vllm", "device"))
    own, borrowed = (find(device, "gemm", "fp8", engine).spread for engine in ("vllm", "sglang"))
    assert own == SPREAD
    assert borrowed.high_80_ratio == pytest.approx(1.1**1.3)
    assert "vllm" in borrowed.because


def test_nothing_kin_is_refused():
    with pytest.raises(OutOfRange, match="int8"):
        find(knowing(get_device("h100-sxm"), ("nvfp4", "vllm", "device")), "gemm", "int8")


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
@pytest.mark.parametrize("device", ["h100-sxm", "h200-sxm", "b200", "gb200", "gb300", "l40s", "rtx-pro-6000-server"])
def test_8_bit_products_have_each_engines_own_constants(device, engine):
    found = find(get_device(device), "gemm", "fp8", engine)
    assert (found.engine, found.origin) == (engine, "device")


@pytest.mark.parametrize(
    ("device", "origin"), [("mi300x", "device"), ("mi325x", "generation"), ("mi350x", "generation")]
)
def test_amd_devices_have_their_own_librarys_constants(device, origin):
    for engine in ("vllm", "sglang"):
        found = find(get_device(device), "gemm", "fp8_block", engine)
        assert (found.engine, found.origin) == ("aiter", origin)


@pytest.mark.parametrize("device", ["p100-pcie-16gb", "v100-sxm-16gb", "t4", "a100-sxm-40gb", "mi210", "mi100"])
def test_fp32_products_are_not_priced_as_16_bit_ones(device):
    assert find(get_device(device), "gemm", "fp32").format == "fp32"


@pytest.mark.parametrize(
    ("device", "format", "expected"),
    [
        ("rtx-4090", "bf16", 165.2 / (660.6 / 2)),  # GeForce sums in FP32 at half the rate
        ("rtx-4090", "fp8", 330.3 / 660.6),
        ("rtx-4090", "int8", 1.0),  # integers at the full one
        ("rtx-5090", "nvfp4", 1.0),
        ("rtx-4090", "ternary_weight_only", 1.0),  # unpacked beside 16 bits
        ("l40s", "bf16", 362 / (733 / 2)),
        ("v100-pcie-32gb", "fp16", 1.0),  # no rate of integers to compare with
    ],
)
def test_matrix_units_held_back_by_half(device, format, expected):
    assert held_back_ratio(get_device(device), format) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("device", "origin", "reached", "expected"),
    [
        ("rtx-4090", "generation", 0.3, 0.6),  # a sibling's losses are a share of the sibling's rate
        ("rtx-4090", "generation", 0.8, 1.0),  # above half of it the device's own rate is what holds
        ("rtx-4090", "device", 0.3, 0.3),  # its own measurements hold its own losses
        ("rtx-4090", "any", 0.3, 0.3),
        ("l40s", "generation", 0.3, 0.3),  # nothing is held back
    ],
)
def test_a_sibling_s_losses_on_units_held_back(device, origin, reached, expected):
    found = Calibration(
        op="gemm",
        format="bf16",
        engine="vllm",
        origin=origin,
        constants={"peak_frac": reached, "overhead_s": 1e-6},
        spread=SPREAD,
    )
    known = unhindered(found, get_device(device), "bf16", ("peak_frac", "absent_frac")).constants
    assert known == {"peak_frac": pytest.approx(expected, rel=1e-3), "overhead_s": 1e-6}
