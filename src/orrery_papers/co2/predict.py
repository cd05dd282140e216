"""CO2: scaling of 128 devices on a fast and a slow network, with stale outer updates and with synchronous ones."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.train import TrainAnswer
from orrery_papers.shared.trained_by import trained


def predict(paper: Paper) -> Iterator[Prediction]:
    """Throughput of a replica among 128 over that of one alone."""
    claims = {claim.id: claim for claim in paper.claims}
    for name in ("scaling-rdma", "scaling-tcp"):
        found = answer(claims[name].setup)
        plain, ours = efficiencies(found)
        tau = int(claims[name].setup.number("num_local_steps"))
        (one,) = found.table("round")
        yield Prediction(
            claim=name,
            predicted=ours,
            because=f"the longer of {tau} steps and one all-reduce; synchronous steps keep {plain:.2f}",
            differs="what is missing to 1 is how much slower kernels run beside a collective; any tau from "
            f"{one['least_local_steps']} on hides the exchange, so the assumed one decides nothing above it",
        )
    plain, ours = efficiencies(answer(claims["gain-tcp"].setup))
    yield Prediction(
        claim="gain-tcp",
        predicted=ours / plain,
        because="the same replicas; each synchronous step waits for what its backward pass cannot hide",
    )


def efficiencies(found: TrainAnswer) -> tuple[float, float]:
    """Scaling efficiency with gradients in every step, and with stale outer updates."""
    plain, ours = (row["scaling_efficiency_frac"] for row in found.table("exchange"))
    return plain, ours


def answer(setup: Setup) -> TrainAnswer:
    """``orrery train --local-updates co2`` on the set-up: plain data parallelism under PyTorch."""
    devices, batch = int(setup.number("num_devices")), int(setup.number("num_micro_batch"))
    return trained(
        model=setup.word("model"),
        device=setup.word("device"),
        devices=devices,
        devices_per_node=int(setup.number("num_devices_per_node")),
        node_link_bytes_per_s=setup.number("link_bytes_per_s"),
        framework="pytorch",
        precision="bf16",
        seq_len=int(setup.number("sequence_tokens")),
        global_batch=batch * devices,
        micro_batch=batch,
        recompute="full",
        local_updates="co2",
        local_steps=int(setup.number("num_local_steps")),
    )
