"""Layouts that no framework can run: degrees that do not divide the dimension that they cut."""

from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.models.model import Experts, LatentAttention, SoftmaxAttention


def num_nodes(job: TrainingJob, layout: TrainingLayout) -> int:
    """Nodes that the layout's devices fill."""
    return -(-layout.num_devices // job.cluster.devices_per_node)


def devices_of_node(job: TrainingJob, layout: TrainingLayout) -> int:
    """Devices, and so processes, of each node."""
    return min(layout.num_devices, job.cluster.devices_per_node)


def shard_ranks(layout: TrainingLayout) -> int:
    """Ranks that share one copy of what is sharded."""
    return layout.sharding_group or layout.num_data_ranks


def experts_of(job: TrainingJob) -> Experts | None:
    """The routed experts of the model's first block that has some."""
    return next((b.experts for b in job.model.blocks if b.experts is not None), None)


def misfit(job: TrainingJob, layout: TrainingLayout) -> str:
    """Why the numbers do not fit together; "" where they do."""
    return _of_devices(job, layout) or _of_batch(job, layout) or _of_model(job, layout) or _of_groups(layout)


def _of_devices(job: TrainingJob, layout: TrainingLayout) -> str:
    needed, have, node = layout.num_devices, job.cluster.num_devices, job.cluster.devices_per_node
    if needed > have:
        return (
            f"tp {layout.tp} x cp {layout.cp} x pp {layout.pp} x dp {layout.dp} needs {needed} devices, "
            f"the cluster has {have}; dp = {have // max(1, needed // layout.dp)} is the most that fits"
        )
    if needed > node and needed % node:
        return f"{needed} devices do not fill nodes of {node}; make tp x cp x pp x dp a multiple of {node}"
    if job.task == "forward_backward":
        return "one forward and backward pass is no training run; make the task pretrain"
    return ""


def _of_batch(job: TrainingJob, layout: TrainingLayout) -> str:
    share = layout.dp * layout.micro_batch
    if job.global_batch % share or job.global_batch < share:
        return (
            f"a global batch of {job.global_batch} does not divide into dp {layout.dp} x micro-batches of "
            f"{layout.micro_batch}; make it a multiple of {share}"
        )
    if layout.cp > 1 and job.seq_len % (2 * layout.cp):
        return (
            f"{job.seq_len} tokens do not cut into 2 x cp = {2 * layout.cp} equal pieces; "
            f"make the sequence length a multiple of {2 * layout.cp}"
        )
    return ""


def _of_model(job: TrainingJob, layout: TrainingLayout) -> str:
    model, chunks = job.model, layout.pp * layout.vp
    if layout.vp > 1 and layout.pp == 1:
        return f"vp = {layout.vp} cuts pipeline stages, and pp is 1; make vp 1"
    if chunks > model.num_layers:
        return f"pp x vp = {chunks} chunks are more than the {model.num_layers} layers; make pp x vp smaller"
    for block in model.blocks:
        mixer = block.mixer
        ways = layout.tp * (layout.cp if layout.context_kind == "all-to-all" else 1)
        if isinstance(mixer, SoftmaxAttention | LatentAttention) and mixer.num_heads % ways:
            return f"{mixer.num_heads} attention heads do not divide {ways} ways (tp, and cp where heads are dealt out)"
    experts, ways = experts_of(job), layout.ep * layout.etp
    if experts is None:
        return f"{model.name} has no experts to deal out; make ep and etp 1" if ways > 1 else ""
    if experts.num_experts % layout.ep:
        return f"{experts.num_experts} experts do not divide by ep = {layout.ep}"
    return ""


def _of_groups(layout: TrainingLayout) -> str:
    ranks = layout.tp * layout.cp * layout.dp
    if ranks % (layout.ep * layout.etp):
        return f"ep {layout.ep} x etp {layout.etp} does not divide the {ranks} ranks of a stage (tp x cp x dp)"
    for name, size in (("sharding_group", layout.sharding_group), ("secondary_group", layout.secondary_group)):
        if size and layout.num_data_ranks % size:
            return f"{name} = {size} does not divide dp x cp = {layout.num_data_ranks}"
    return ""
