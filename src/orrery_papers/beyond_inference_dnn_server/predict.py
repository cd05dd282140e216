"""Servers of images: what unpacking and copying take beside a vision transformer, for medium and large images."""

from collections.abc import Iterator

import numpy as np

from orrery import kernels
from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.transfer import HOST_RATE_FRAC
from orrery.kernels.ops import AttentionPrefill, Gemm
from orrery.serving.vision import ImageServer

CHANNELS, INPUT_BYTES_PER_CHANNEL = 3, 4.0  # normalised to FP32

DIFFERS = (
    "images, cores and their rates, none of which was found: the share follows from pixels over the rate of unpacking "
    "them, and from how fast the network is"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The share of a lone request's latency; what is lost of the network's throughput, on the better side."""
    claims = {claim.id: claim for claim in paper.claims}
    medium = server_of(claims["latency"].setup)
    share = medium.overhead_frac(on_device=False)
    yield Prediction(
        claim="latency",
        predicted=share,
        because=f"{medium.unpacking_s(on_device=False) * 1e3:.2f} ms to unpack and resize on one core, "
        f"{medium.copying_s(on_device=False) * 1e3:.2f} ms to copy, {medium.network_s * 1e3:.2f} ms for the network",
        differs=DIFFERS,
    )
    large = server_of(claims["throughput"].setup)
    losses = {where: large.lost_frac(on_device=where == "device") for where in ("host", "device")}
    best = min(losses, key=lambda where: losses[where])
    yield Prediction(
        claim="throughput",
        predicted=losses[best],
        because=f"unpacked on the {best}: {large.images_per_s(on_device=best == 'device'):.0f} images a second of "
        f"{1.0 / large.network_batched_s:.0f} that the network makes",
        differs=DIFFERS,
    )


def server_of(setup: Setup) -> ImageServer:
    """The set-up's image, network and machine."""
    device, batch = get_device(setup.word("device")), int(setup.number("num_batch"))
    pixels, side = setup.number("num_image_pixels"), setup.number("num_network_side_pixels")
    return ImageServer(
        packed_bytes=pixels * setup.number("packed_bytes_ratio"),
        unpacked_bytes=pixels * CHANNELS,
        network_s=network_s(setup, 1),
        network_batched_s=network_s(setup, batch) / batch,
        core_bytes_per_s=CHANNELS * setup.number("num_core_pixels_per_s"),
        device_bytes_per_s=CHANNELS * setup.number("num_device_pixels_per_s"),
        num_cores=int(setup.number("num_cores")),
        link_bytes_per_s=device.host.each_way_bytes_per_s * HOST_RATE_FRAC,
        link_latency_s=device.host.latency_s,
        input_bytes=side * side * CHANNELS * INPUT_BYTES_PER_CHANNEL,
    )


def network_s(setup: Setup, images: int) -> float:
    """A vision transformer: patches as tokens, four products and attention a layer."""
    device, form = get_device(setup.word("device")), setup.word("weights_format")
    hidden, ffn, heads = (int(setup.number(n)) for n in ("num_hidden", "num_ffn_features", "num_heads"))
    tokens = int(setup.number("num_network_side_pixels") // setup.number("num_patch_side_pixels")) ** 2 + 1
    n = np.array([3 * hidden, hidden, ffn, hidden])
    k = np.array([hidden, hidden, hidden, ffn])
    products = Gemm(m=images * tokens, n=n, k=k, format=form, quantises_input=False)
    attention = AttentionPrefill(
        batch=images,
        query_tokens=tokens,
        context_tokens=tokens,
        num_heads=heads,
        num_kv_heads=heads,
        head_size=hidden // heads,
        format=form,
        kv_format=form,
        is_causal=False,
    )
    layer_s = float(kernels.predict(products, device).time_s.sum()) + float(kernels.predict(attention, device).time_s)
    return setup.number("num_layers") * layer_s
