"""Launch commands: one file an engine, held to the flags that a version of it really accepts."""

from orrery.execution.layout import TREE_METHODS, Deployment
from orrery.planner.launch import sglang, tensorrt_llm, vllm
from orrery.planner.launch.command import Launch
from orrery.planner.launch.manifest import Manifest, manifest_for

WRITERS = {"vllm": vllm.write, "sglang": sglang.write, "tensorrt-llm": tensorrt_llm.write}
"""Engine -> how its command is written."""


def launch(
    deployment: Deployment, *, longest_tokens: float = 0.0, replicas: int = 1, versions: dict[str, str] | None = None
) -> tuple[dict[str, str], tuple[str, ...]]:
    """A command for every engine (its newest recorded version unless one is named), and what to know about them."""
    commands: dict[str, str] = {}
    notes: list[str] = []
    for engine, write in WRITERS.items():
        version = (versions or {}).get(engine, "")
        if deployment.engine.name == engine:
            version = version or deployment.engine.version
        manifest = manifest_for(engine, version)
        written: Launch = write(deployment, manifest, longest_tokens)
        commands[engine] = written.text
        notes.extend(f"{engine} {manifest.version}: {note}" for note in written.notes)
    nodes = -(-deployment.layout.num_devices // deployment.cluster.devices_per_node)
    if nodes > 1:
        notes.append(
            f"one replica spans {nodes} nodes: vLLM needs a Ray cluster, SGLang --nnodes, --node-rank and "
            "--dist-init-addr on each, TensorRT-LLM mpirun or srun"
        )
    if (head := deployment.draft_head) and head.method in TREE_METHODS:
        notes.append("no command starts a tree of draft tokens: these serve the model without it")
    elif head:
        notes.append("only the command of vLLM starts the drafting head; add it to the others yourself")
    if replicas > 1:
        notes.append(f"start {replicas} of these behind a load balancer; each is one replica")
    return commands, tuple(notes)


__all__ = ["WRITERS", "Launch", "Manifest", "launch", "manifest_for"]
