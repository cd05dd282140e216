"""Decentralized Diffusion Models: experts on islands that never meet, against one model over the same slow network."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.train.job import Islands, TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.training.local_updates import get_local_updates, replica_of
from orrery.training.replica import Replica, Round
from orrery_papers.shared.setup import joined

S_PER_DAY = 86400.0


def predict(paper: Paper) -> Iterator[Prediction]:
    """The whole run, by the steps of islands that never meet; beside them those whose gradients cross."""
    (claim,) = (claim for claim in paper.claims if not claim.missing)
    setup = claim.setup
    one = replica(setup)
    alone, together = trained(one, "isolated"), trained(one, "synchronous")
    images_per_s = setup.number("num_devices") * setup.number("num_micro_batch") / alone.time_s
    time_s = setup.number("num_images") / images_per_s
    yield Prediction(
        claim=claim.id, predicted=time_s,
        because=f"{images_per_s:.0f} images/s: {time_s / S_PER_DAY:.1f} days; a step of {alone.time_s:.2f} s inside an "
        f"island, {together.time_s:.2f} s where gradients cross",
        differs="the number of images is assumed",
    )  # fmt: skip


def trained(one: Replica, name: str) -> Round:
    """A round of that technique."""
    technique = get_local_updates(name)
    return technique.rule(one, technique.knobs())


def replica(setup: Setup) -> Replica:
    """One device among all, in islands of one machine each."""
    per_node, devices = int(setup.number("num_devices_per_node")), int(setup.number("num_devices"))
    device, batch = get_device(setup.word("device")), int(setup.number("num_micro_batch"))
    slow = joined(device, setup.number("island_link_bytes_per_s"), per_node)
    job = TrainingJob(
        model=get_model(setup.word("model")), framework=get_framework("pytorch", device), recipe=get_recipe("bf16"),
        cluster=Cluster(device=slow, num_devices=devices, devices_per_node=per_node),
        islands=Islands(num_devices=per_node, link=replace(slow.scaleout, name="between islands")),
        seq_len=int(setup.number("image_tokens")), global_batch=batch * devices,
    )  # fmt: skip
    return replica_of(job, TrainingLayout(dp=devices, micro_batch=batch))
