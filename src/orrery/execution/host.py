"""Host time of a step on top of the device's: scheduling, launches, sampling.

    step = max(max(device, launch) + sampling_s x sequences + (1 - overlap) x host, host + launch)

where host = step_s + per_sequence_s x sequences, and sampling is what an engine does sequence by sequence between
logits and tokens: the next step waits for them, however early it was scheduled. Launches run while the device works,
so a step that is no CUDA graph takes no less than they do; what the host does before them shows, unless asynchronous
scheduling (overlap 1) does it during the step before: then one thread does both, and only shows when it is slower than
the device.
"""

import numpy as np
from numpy.typing import NDArray

from orrery.execution.batch import Batch, Floats, Ints
from orrery.execution.engine import Engine
from orrery.execution.layout import Deployment
from orrery.execution.shard import num_kernels, num_pieces

WIDE_TP = 4
"""Devices that share tensors, from which on an engine may capture larger graphs."""


def launched_s(deployment: Deployment, batch: Batch) -> Floats:
    """The host's launches of each step: none of a CUDA graph, fewer of one that is replayed in pieces."""
    by_kernel_s = np.where(is_graph(deployment, batch), 0.0, launches_s(deployment))
    return np.where(is_in_pieces(deployment, batch), np.minimum(by_kernel_s, pieces_s(deployment)), by_kernel_s)


def is_graph(deployment: Deployment, batch: Batch) -> NDArray[np.bool_]:
    """Whether each step is replayed as one CUDA graph: decodes only, no more than the largest that was captured."""
    few = batch.decode_sequences <= graph_seqs(deployment)
    return np.asarray(few & (batch.prompt_sequences == 0))


def is_in_pieces(deployment: Deployment, batch: Batch) -> NDArray[np.bool_]:
    """Whether each step is replayed piece by piece: few enough tokens, prompts among them or not."""
    return np.asarray(batch.num_tokens <= graph_tokens(deployment))


def graph_tokens(deployment: Deployment) -> int:
    """The most tokens of a step that is replayed in pieces; below 0 where there are no graphs."""
    engine = deployment.engine
    if not engine.has_cuda_graphs or (engine.has_plain_pieces and not is_plain(deployment)):
        return -1
    latent = engine.max_num_latent_graph_tokens if deployment.model.has_latent_attention else 0
    return latent or engine.max_num_graph_tokens


def is_plain(deployment: Deployment) -> bool:
    """Whether a step with prompts has nothing that only some of its kernels know of: drafts, adapters, images, further
    stages, or other ranks' tokens at the experts."""
    layout, has_experts = deployment.layout, any(b.experts for b in deployment.model.blocks)
    more = deployment.draft_head or deployment.adapters or deployment.images
    return not more and layout.pp == 1 and not (layout.dp > 1 and has_experts)


def graph_seqs(deployment: Deployment) -> int:
    """The most sequences that a CUDA graph holds; below 0 where there are no graphs."""
    engine = deployment.engine
    if not engine.has_cuda_graphs:
        return -1
    wide = engine.max_num_wide_graph_seqs if deployment.layout.tp >= WIDE_TP else 0
    return wide or engine.max_num_graph_seqs


def captured(sizes: Ints) -> Ints:
    """Each batch size padded to the CUDA graph that holds it; beyond the largest graph it runs as it is.

    vLLM captures 1, 2, 4, every 8th to 256 and every 16th to 512.
    """
    graphs = np.concatenate([[1, 2, 4], np.arange(8, 257, 8), np.arange(272, 513, 16)])
    at = np.minimum(np.searchsorted(graphs, sizes), graphs.size - 1)
    return np.where(sizes > graphs[-1], sizes, np.where(sizes > 0, graphs[at], 0)).astype(np.int64)


def launches_s(deployment: Deployment) -> float:
    """The host's time to launch every kernel of a step that is no CUDA graph."""
    return deployment.engine.launch_s * num_kernels(deployment)


def pieces_s(deployment: Deployment) -> float:
    """The same for a step that is replayed in pieces."""
    return deployment.engine.launch_s * num_pieces(deployment)


def wall_s(engine: Engine, device_s: Floats, num_sequences: Ints | int, launch_s: Floats | float = 0.0) -> Floats:
    """Steps that take the device so long, with the host's part for their sequences and its launches beside them."""
    host_s = engine.step_s + engine.per_sequence_s * num_sequences
    sampled_s = np.maximum(device_s, launch_s) + engine.sampling_s * num_sequences
    return np.maximum(sampled_s + (1.0 - engine.overlap_frac) * host_s, host_s + launch_s)
