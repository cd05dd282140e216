"""ZeRO-Infinity: devices that a trillion parameters need, and what drives and all links together make of them."""

from collections.abc import Iterator
from typing import Any

from orrery.base.errors import FactError
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.train import train
from orrery_papers.shared.described import config_file, model_word
from orrery_papers.shared.offloaded import largest_of, step_of

FINEST = "offload.num_pieces=48"
"""The largest product of a layer cut by sixteen."""

MAX_NODES = 256


def predict(paper: Paper) -> Iterator[Prediction]:
    """Devices from bytes; the rate from lanes."""
    claims = {claim.id: claim for claim in paper.claims}
    pod, node = claims["gpus-for-1t"].setup, claims["fine-tune-1t"].setup
    yield Prediction(
        claim="gpus-for-1t",
        predicted=devices_for(pod, model_word(pod)),
        because="the fewest nodes on which `orrery train --tp 16 --sharding zero3` fits",
        differs="the 3D-parallel system behind the number is not itemised; layers are cut over a node here, and states "
        "parted among nodes",
    )
    yield Prediction(
        claim="gpus-for-100b",
        predicted=devices_for(pod, hundred_billion(pod)),
        because="the same for 80 layers of 10240",
        differs="the paper divides 20 bytes a parameter by the memory; here activations and the allocator count too",
    )
    run = claims["petaflops"].setup
    total = step_of(run, "zero-infinity", **on_nodes(run)).model_flops_per_s_per_device * run.number("num_devices")
    differs = "products and small kernels of a V100 were slower than the catalogue's"
    yield Prediction(
        claim="petaflops",
        predicted=total,
        differs=differs,
        because="layers arrive under the computing; states pass the drives after the backward pass",
    )
    yield Prediction(
        claim="share-of-peak",
        predicted=step_of(run, "zero-infinity", **on_nodes(run)).mfu_frac,
        because="the rate over 125 TFLOP/s",
        differs=differs,
    )
    yield Prediction(
        claim="fine-tune-1t",
        predicted=largest_of(node, "zero-infinity", knob=FINEST, **on_nodes(node)),
        because="18 bytes a parameter on the node's drives, pieces of layers and a layer's activations on each device",
    )
    yield Prediction(
        claim="largest-512",
        because="the same on the drives of 32 nodes, checkpoints in host memory",
        predicted=largest_of(pod, "zero-infinity", knob=FINEST, **on_nodes(pod, batch=1)),
        differs="a layer's activations of a whole sequence must fit a device here; the paper's tiling cuts those, too",
    )


def on_nodes(setup: Setup, batch: int = 0) -> dict[str, Any]:
    """All devices of the set-up's nodes, which share drives, memory and links, each with a micro-batch."""
    devices, micro = int(setup.number("num_devices")), batch or int(setup.number("num_micro_batch"))
    return {
        "devices": devices,
        "devices_per_node": int(setup.number("num_devices_per_node")),
        "devices_per_host_link": int(setup.number("num_devices_per_link")),
        "micro_batch": micro,
        "global_batch": micro * devices,
        "framework": "megatron-deepspeed",
    }


def hundred_billion(setup: Setup) -> str:
    """A GPT of a hundred billion parameters."""
    sizes = {"n_layer": 80, "n_embd": 10240, "n_head": 80, "n_positions": int(setup.number("sequence_tokens"))}
    return config_file({"model_type": "gpt2", "vocab_size": 50257, **sizes}, "gpt-100b")


def devices_for(setup: Setup, model: str) -> float:
    """The fewest whole nodes whose devices hold a model with all its states parted among them, in devices."""
    few, many = 0, MAX_NODES
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if fits(setup, model, middle) else (middle, many)
    if many == MAX_NODES:
        raise FactError(f"setup {setup.name}: {model} fits on no {MAX_NODES} nodes.")
    return many * setup.number("num_devices_per_node")


def fits(setup: Setup, model: str, num_nodes: int) -> bool:
    """Whether so many nodes hold it, layers cut inside a node and states parted among nodes, one sequence each."""
    each = int(setup.number("num_devices_per_node"))
    found = train(
        model=model,
        device=setup.word("device"),
        devices=num_nodes * each,
        devices_per_node=each,
        seq_len=int(setup.number("sequence_tokens")),
        precision="fp16",
        micro_batch=1,
        global_batch=num_nodes,
        tp=each,
        sharding="zero3",
        recompute="full",
        framework="deepspeed",
        fused_attention=False,
    )
    return not isinstance(found, InfeasibleAnswer)
