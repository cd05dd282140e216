"""Decentralized Diffusion Models: experts on sites that never meet, against one model over the same slow network."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.train import TrainAnswer
from orrery_papers.shared.trained_by import trained

S_PER_DAY = 86400.0


def predict(paper: Paper) -> Iterator[Prediction]:
    """The whole run, by the steps of sites that never meet; beside them those whose gradients cross."""
    (claim,) = (claim for claim in paper.claims if not claim.missing)
    setup = claim.setup
    together, alone = answer(setup).table("exchange")
    images_per_s = setup.number("num_devices") * setup.number("num_micro_batch") / alone["step_s"]
    time_s = setup.number("num_images") / images_per_s
    yield Prediction(
        claim=claim.id,
        predicted=time_s,
        because=f"{images_per_s:.0f} images/s: {time_s / S_PER_DAY:.1f} days; a step of {alone['step_s']:.2f} s inside "
        f"a site, {together['step_s']:.2f} s where gradients cross",
        differs="the number of images is assumed",
    )


def answer(setup: Setup) -> TrainAnswer:
    """``orrery train --sites-train experts``: each site one machine."""
    per_node, devices = int(setup.number("num_devices_per_node")), int(setup.number("num_devices"))
    batch = int(setup.number("num_micro_batch"))
    return trained(
        model=setup.word("model"),
        device=setup.word("device"),
        devices=devices,
        devices_per_node=per_node,
        sites=devices // per_node,
        site_link_bytes_per_s=setup.number("island_link_bytes_per_s"),
        sites_train="experts",
        framework="pytorch",
        precision="bf16",
        seq_len=int(setup.number("image_tokens")),
        global_batch=batch * devices,
        micro_batch=batch,
        recompute="none",
    )
