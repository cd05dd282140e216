"""A Llama of three layers, 64 wide, on as many devices as its layout has."""

from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.execution.layout import Deployment, Formats, Layout
from orrery.hardware.cluster import Cluster
from orrery.models.config import parse

H100 = get_device("h100-sxm")
LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 100,
    "vocab_size": 1000,
}


def cut(weights="bf16", kv="bf16", activations="bf16", config=None, device=H100, **degrees):
    layout = Layout(**degrees)
    return Deployment(
        model=parse(LLAMA | (config or {}), name="tiny"),
        cluster=Cluster(device=device, num_devices=layout.num_devices, devices_per_node=8),
        layout=layout,
        formats=Formats(weights=weights, activations=activations, kv=kv),
        engine=get_engine("vllm", "", device),
    )
