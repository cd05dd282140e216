"""A server that classifies images: unpacking on the host or on the device, the copy, and a vision transformer.
[abouelhamayed-2024]"""

from dataclasses import dataclass

import numpy as np

from orrery import kernels
from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, numbers, whole
from orrery.execution.host_rates import copy_bytes_per_s
from orrery.hardware.device import Device
from orrery.kernels.ops import AttentionPrefill, Gemm
from orrery.serving.vision import ImageServer

CHANNELS, INPUT_BYTES_PER_CHANNEL = 3, 4.0  # normalised to FP32


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Comma-separated pixels of an image, the network (ViT-Base by default), and the rates of unpacking."""

    image_px: str = "187500,8294400"  # 500 x 375 and 3840 x 2160
    packed_ratio: float = 0.6  # bytes of a file over its pixels
    num_layers: int = 12
    num_hidden: int = 768
    num_ffn: int = 3072
    num_heads: int = 12
    num_side: int = 224  # pixels a side that the network takes
    num_patch: int = 16
    num_batch: int = 64
    num_cores: int = 16
    num_core_pixels_per_s: float = 1e8
    num_device_pixels_per_s: float = 1e9
    format: str = "fp16"


def run(request: Run) -> tuple[Row, ...]:
    """A row for each size of image and place of unpacking."""
    if request.device is None:
        raise ScenarioError("device: experiment image-server runs on one; write --device rtx-4090.")
    sizes: Sizes = request.sizes
    if min(sizes.packed_ratio, sizes.num_core_pixels_per_s, sizes.num_device_pixels_per_s) <= 0.0:
        raise ScenarioError("set: packed_ratio and both rates of unpacking are above 0.")
    alone_s = network_s(sizes, request.device, 1)
    batch = whole("num_batch", sizes.num_batch, most=100_000)
    batched_s = network_s(sizes, request.device, batch) / batch
    rows = list[Row]()
    for pixels in numbers("image_px", sizes.image_px, least=1, most=1e10):
        server = _server(sizes, request.device, pixels, alone_s, batched_s)
        for place in ("host", "device"):
            here = place == "device"
            rows.append(
                {
                    "image_px": int(pixels),
                    "unpacked_on": place,
                    "unpacking_s": server.unpacking_s(on_device=here),
                    "copying_s": server.copying_s(on_device=here),
                    "network_s": server.network_s,
                    "latency_s": server.latency_s(on_device=here),
                    "overhead_frac": server.overhead_frac(on_device=here),
                    "images_per_s": server.images_per_s(on_device=here),
                    "lost_frac": server.lost_frac(on_device=here),
                }
            )
    return tuple(rows)


def _server(sizes: Sizes, device: Device, pixels: float, alone_s: float, batched_s: float) -> ImageServer:
    return ImageServer(
        packed_bytes=pixels * sizes.packed_ratio,
        unpacked_bytes=pixels * CHANNELS,
        network_s=alone_s,
        network_batched_s=batched_s,
        core_bytes_per_s=CHANNELS * sizes.num_core_pixels_per_s,
        device_bytes_per_s=CHANNELS * sizes.num_device_pixels_per_s,
        num_cores=whole("num_cores", sizes.num_cores, most=10_000),
        link_bytes_per_s=copy_bytes_per_s(device),
        link_latency_s=device.host.latency_s,
        input_bytes=whole("num_side", sizes.num_side, most=100_000) ** 2 * CHANNELS * INPUT_BYTES_PER_CHANNEL,
    )


def network_s(sizes: Sizes, device: Device, images: int) -> float:
    """Seconds of a vision transformer for so many images: patches as tokens, four products and attention a layer."""
    hidden, ffn, heads = (
        whole(name, getattr(sizes, name), most=10**6) for name in ("num_hidden", "num_ffn", "num_heads")
    )
    if heads > hidden or sizes.num_patch < 1 or sizes.num_side < sizes.num_patch:
        raise ScenarioError("set: num_heads is at most num_hidden, and num_patch from 1 to num_side.")
    tokens = (sizes.num_side // sizes.num_patch) ** 2 + 1
    n, k = np.array([3 * hidden, hidden, ffn, hidden]), np.array([hidden, hidden, hidden, ffn])
    products = Gemm(m=images * tokens, n=n, k=k, format=sizes.format, quantises_input=False)
    attention = AttentionPrefill(
        batch=images,
        query_tokens=tokens,
        context_tokens=tokens,
        num_heads=heads,
        num_kv_heads=heads,
        head_size=hidden // heads,
        format=sizes.format,
        kv_format=sizes.format,
        is_causal=False,
    )
    layer_s = float(np.sum(kernels.predict(products, device).time_s))
    layer_s += float(np.sum(kernels.predict(attention, device).time_s))
    return whole("num_layers", sizes.num_layers, most=10_000) * layer_s


EXPERIMENT = Experiment(
    name="image-server",
    question="What do unpacking and copying of images cost beside the network, on the host and on the device?",
    run=run,
    num_steps=1,
    claims=("beyond-inference-dnn-server",),
    sizes=Sizes,
    reads=("device",),
    keys=("image_px", "unpacked_on"),
)
