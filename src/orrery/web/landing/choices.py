"""Choices of the landing page: models that are computed ahead, accelerators, engines, formats, traffic."""

from dataclasses import dataclass

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.numerics.registry import get_format


@dataclass(frozen=True, slots=True, kw_only=True)
class Popular:
    """A model that is computed ahead: its name in an address, and as people write it."""

    key: str
    title: str


MODELS = (
    Popular(key="llama-3.1-70b", title="Llama 3.1 70B"),
    Popular(key="deepseek-r1", title="DeepSeek-R1"),
    Popular(key="gpt-oss-120b", title="gpt-oss 120B"),
    Popular(key="qwen3-235b-a22b", title="Qwen3 235B-A22B"),
    Popular(key="kimi-k2.5", title="Kimi K2.5"),
    Popular(key="llama-3.1-8b", title="Llama 3.1 8B"),
    Popular(key="minimax-m2.5", title="MiniMax M2.5"),
    Popular(key="qwen3-32b", title="Qwen3 32B"),
    Popular(key="deepseek-v3.2", title="DeepSeek-V3.2"),
    Popular(key="deepseek-v4-pro", title="DeepSeek-V4 Pro"),
    Popular(key="deepseek-v4-flash", title="DeepSeek-V4 Flash"),
    Popular(key="glm-5", title="GLM-5"),
    Popular(key="qwen3.5-397b-a17b", title="Qwen3.5 397B-A17B"),
    Popular(key="qwen3-coder-480b-a35b", title="Qwen3 Coder 480B-A35B"),
    Popular(key="llama-3.1-405b", title="Llama 3.1 405B"),
    Popular(key="llama-4-maverick", title="Llama 4 Maverick"),
    Popular(key="llama-4-scout", title="Llama 4 Scout"),
    Popular(key="qwen3-30b-a3b", title="Qwen3 30B-A3B"),
    Popular(key="qwen3-8b", title="Qwen3 8B"),
    Popular(key="gpt-oss-20b", title="gpt-oss 20B"),
    Popular(key="gemma-4-31b", title="Gemma 4 31B"),
    Popular(key="gemma-4-26b-a4b", title="Gemma 4 26B-A4B"),
)
"""Popular first; the first is what the page opens with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """A device of the chart: its name in an address, its short title, and its place in its vendor's ramp."""

    key: str
    title: str
    hue: str
    is_card: bool = False  # a PCIe card without a fabric between devices


DEVICES = (
    Accelerator(key="gb300", title="GB300", hue="nv1"),
    Accelerator(key="gb200", title="GB200", hue="nv2"),
    Accelerator(key="b300", title="B300", hue="nv3"),
    Accelerator(key="b200", title="B200", hue="nv4"),
    Accelerator(key="h200-sxm", title="H200", hue="nv5"),
    Accelerator(key="h100-sxm", title="H100", hue="nv6"),
    Accelerator(key="a100-sxm-80gb", title="A100 80 GB", hue="nv7"),
    Accelerator(key="rtx-pro-6000-server", title="RTX PRO 6000", hue="nv6", is_card=True),
    Accelerator(key="rtx-5090", title="RTX 5090", hue="nv5", is_card=True),
    Accelerator(key="l40s", title="L40S", hue="nv7", is_card=True),
    Accelerator(key="mi355x", title="MI355X", hue="amd1"),
    Accelerator(key="mi325x", title="MI325X", hue="amd2"),
    Accelerator(key="mi300x", title="MI300X", hue="amd3"),
    Accelerator(key="gaudi3", title="Gaudi 3", hue="oth1"),
    Accelerator(key="tpu-v7x", title="TPU v7x", hue="oth2"),
    Accelerator(key="tpu-v6e", title="TPU v6e", hue="oth3"),
    Accelerator(key="trainium2", title="Trainium2", hue="oth4"),
)

ENGINES = {"vllm": "vLLM", "sglang": "SGLang", "tensorrt-llm": "TensorRT-LLM"}
VENDORS_OF = {"sglang": ("NVIDIA", "AMD"), "tensorrt-llm": ("NVIDIA",)}
"""Vendors whose devices an engine serves on; an engine that is not named here serves on all of them."""

TRAFFIC = {"1k/1k": (1024, 1024), "8k/1k": (8192, 1024), "1k/8k": (1024, 8192)}
"""Input and output tokens of each kind of traffic; only the first is computed ahead."""

BITS = ("16", "8", "4")
"""Classes of weight formats, by bits an element."""

SIZES = ("1", "2", "4", "8")
"""Largest numbers of devices that the page offers."""

MAX_DEVICES = 8
TTFT_S, TPOT_S = 1.0, 0.05
"""The SLO that the page opens with."""


def keys_of(engine: str) -> tuple[str, ...]:
    """The accelerators that an engine serves on."""
    vendors = VENDORS_OF.get(engine)
    return tuple(d.key for d in DEVICES if vendors is None or get_device(d.key).vendor in vendors)


def formats_on(model: str, device: str) -> dict[str, tuple[str, str]]:
    """(weights, cache) of each class of formats that a model can be served in on a device; blank: the checkpoint's own.

    The checkpoint's own class; of wider ones also the 8 and 4 bits that the device multiplies. The cache has 8 bits
    beside weights of 8 or 4, where the device has FP8.
    """
    found, rates = get_model(model), get_device(device).dense_flops_per_s
    held = get_format(found.experts_format or found.weights_format)
    own = "16" if held.element_bits >= 16 else "8" if held.element_bits > 4 else "4"
    native = {
        "8": next((f for f in ("fp8", "int8") if f in rates), ""),
        "4": "nvfp4" if "nvfp4" in rates else "mxfp4" if "fp4" in rates else "",
    }
    narrower = {bits: name for bits, name in native.items() if name and int(bits) < int(own)}
    cache = "fp8" if "fp8" in rates else "bf16"
    formats = {own: "bf16" if own == "16" else "", **narrower}
    return {bits: (weights, "bf16" if bits == "16" else cache) for bits, weights in formats.items()}
