"""PCPP: bytes and steps of a picture in patches, with all patches as context and with parts of two."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.patches import Denoised, Picture, alone, get_patches
from orrery.models.denoiser import stable_diffusion_xl

DIFFERS = (
    "which devices and sizes the ends belong to; text encoders and decoder, which no patch makes faster; and copies of "
    "all patches' caches before every attention, so that reading less brings less than its products"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """What a device receives, then whole runs against one device."""
    claims = {claim.id: claim for claim in paper.claims}
    setup = claims["communication"].setup
    parts, whole = spread(setup, "patch-neighbour-context"), spread(setup, "patch-whole-context")
    yield Prediction(
        claim="communication",
        predicted=1.0 - parts.received_bytes / whole.received_bytes,
        because=f"{parts.received_bytes / 1e9:.2f} GB a step from neighbours, {whole.received_bytes / 1e9:.2f} GB from "
        "everybody; borders of convolutions go to everybody in both",
        differs="what was measured, bytes or time; and how the passes were shared out",
    )
    for name, technique in (("speedup", "patch-neighbour-context"), ("speedup-whole", "patch-whole-context")):
        for end in ("most", "least"):
            setup = claims[f"{name}-{end}"].setup
            run, single_s = spread(setup, technique), single(setup)
            yield Prediction(
                claim=f"{name}-{end}",
                predicted=single_s / run.time_s,
                because=f"{single_s:.2f} s alone, {run.time_s:.2f} s: {1e3 * run.compute_s:.1f} ms of kernels a step "
                f"beside {1e3 * run.exchange_s:.1f} ms of exchange",
                differs=DIFFERS,
            )


def spread(setup: Setup, technique: str) -> Denoised:
    """The run over all devices."""
    found = get_patches(technique)
    read = {"read_frac": setup.number("read_patch_frac")} if technique == "patch-neighbour-context" else {}
    return found.rule(picture(setup), found.knobs(**read))


def single(setup: Setup) -> float:
    """Seconds of the run on one device."""
    return alone(replace(picture(setup), num_devices=1))


def picture(setup: Setup) -> Picture:
    """The set-up's picture and devices."""
    side = int(setup.number("num_picture_side_pixels") / setup.number("num_pixels_per_position"))
    return Picture(
        layers=tuple(_layers()),
        height=side,
        width=side,
        num_guided=int(setup.number("num_guided_passes")),
        num_text_tokens=int(setup.number("num_text_tokens")),
        num_steps=int(setup.number("num_denoising_steps")),
        num_waiting_steps=int(setup.number("num_waiting_steps")),
        device=get_device(setup.word("device")),
        num_devices=int(setup.number("num_devices")),
        devices_per_node=int(setup.number("num_devices_per_node")),
    )


_layers = cache(lambda: tuple(stable_diffusion_xl()))
