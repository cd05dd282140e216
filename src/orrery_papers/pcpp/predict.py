"""PCPP: a picture in patches, with all patches as context and with parts of two, as ``estimate`` answers for it."""

from collections.abc import Iterator
from typing import Any

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.estimates import estimate

DIFFERS = (
    "which devices and sizes the ends belong to; a U-Net's kernels and the decoder, which takes whole pictures on one "
    "device here"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Bytes that a device receives, then whole runs against one device."""
    claims = {claim.id: claim for claim in paper.claims}
    setup = claims["communication"].setup
    parts, whole = (patches(setup, context)["received_bytes_per_pass"] for context in ("neighbour", "whole"))
    yield Prediction(
        claim="communication",
        predicted=1.0 - parts / whole,
        because=f"{parts / 1e9:.2f} GB a step from neighbours, {whole / 1e9:.2f} GB from everybody; borders of "
        "convolutions go to everybody in both",
        differs="what was measured, bytes or time; and how the passes were shared out",
    )
    for name, context in (("speedup", "neighbour"), ("speedup-whole", "whole")):
        for end in ("most", "least"):
            found = patches(claims[f"{name}-{end}"].setup, context)
            yield Prediction(
                claim=f"{name}-{end}",
                predicted=found["speedup"],
                because=f"its passes alone {found['denoise_speedup']:.2f} times faster, as "
                f"{percent(found['attention_left_out_frac'])} of one device's are left out; text encoders and decoder "
                "are every device's own work",
                differs=DIFFERS,
            )


def patches(setup: Setup, context: str) -> dict[str, Any]:
    """Answer of ``orrery estimate`` for the set-up in patches."""
    side = int(setup.number("num_picture_side_pixels"))
    read = {"patch_read_frac": setup.number("read_patch_frac")} if context == "neighbour" else {}
    found = estimate(
        model=setup.word("network"),
        device=setup.word("device"),
        height=side,
        width=side,
        num_inference_steps=int(setup.number("num_denoising_steps")),
        patch_parallel=int(setup.number("num_devices")),
        patch_context=context,
        patch_warmup_steps=int(setup.number("num_waiting_steps")) - 1,
        cuda_graph=setup.word("launches") == "graph",
        **read,
    )
    return found.to_json()["patches"]
