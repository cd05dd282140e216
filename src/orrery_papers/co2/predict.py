"""CO2: scaling of 128 devices on a fast and a slow network, with stale outer updates and with synchronous ones."""

from collections.abc import Iterator

from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.training.local_updates import get_local_updates, replica_of
from orrery.training.replica import Replica, scaling_efficiency
from orrery_papers.shared.setup import joined


def predict(paper: Paper) -> Iterator[Prediction]:
    """Throughput of a replica among 128 over that of one alone."""
    claims = {claim.id: claim for claim in paper.claims}
    for name in ("scaling-rdma", "scaling-tcp"):
        setup = claims[name].setup
        tau = int(setup.number("num_local_steps"))
        ours, plain = efficiency(setup, "co2"), efficiency(setup, "synchronous")
        yield Prediction(
            claim=name, predicted=ours,
            because=f"the longer of {tau} steps and one all-reduce; synchronous steps keep {plain:.2f}",
            differs="what is missing to 1 is how much slower kernels run beside a collective",
        )  # fmt: skip
    slow = claims["gain-tcp"].setup
    yield Prediction(
        claim="gain-tcp", predicted=efficiency(slow, "co2") / efficiency(slow, "synchronous"),
        because="the same replicas; each synchronous step waits for what its backward pass cannot hide",
    )  # fmt: skip


def efficiency(setup: Setup, name: str) -> float:
    """Scaling efficiency of one technique with the set-up's local steps."""
    technique, one = get_local_updates(name), replica(setup)
    knobs = technique.knobs(num_steps=int(setup.number("num_local_steps"))) if name == "co2" else technique.knobs()
    return scaling_efficiency(one, technique.rule(one, knobs))


def replica(setup: Setup) -> Replica:
    """One device of plain data parallelism under PyTorch."""
    per_node, devices = int(setup.number("num_devices_per_node")), int(setup.number("num_devices"))
    device = joined(get_device(setup.word("device")), setup.number("link_bytes_per_s"), per_node)
    batch = int(setup.number("num_micro_batch"))
    job = TrainingJob(
        model=get_model(setup.word("model")), framework=get_framework("pytorch", device), recipe=get_recipe("bf16"),
        cluster=Cluster(device=device, num_devices=devices, devices_per_node=per_node),
        seq_len=int(setup.number("sequence_tokens")), global_batch=batch * devices,
    )  # fmt: skip
    return replica_of(job, TrainingLayout(dp=devices, micro_batch=batch, recompute="full"))
