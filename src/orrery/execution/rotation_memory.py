"""Memory for learning a model's rotations on a device: layer by layer from activations, or end to end.

Layer by layer, one layer's weights make the activations of the next, and the rotation follows the activations that a
layer has seen: nothing else is there. End to end, the loss of the whole model must flow back to the rotation: the
model is shared out, every layer is gathered in turn, and its weights are rotated in the graph, in 64 bits as the code
of SpinQuant does (train_utils/quant_linear.py), so that they stay until the gradient of the rotation is there. Only
inputs of layers are kept besides, the rest is computed again.
"""

from dataclasses import dataclass

from orrery.base.errors import OutOfRange
from orrery.execution.finetune_memory import activations
from orrery.models.model import Block, Model

STORED_BYTES, WORKING_BYTES, EXACT_BYTES = 2.0, 4.0, 8.0
"""Bytes of a weight or activation as it is stored, as an optimizer works on it, and as it is rotated."""

ROTATION_COPIES = 4
"""The rotation, its gradient and two moments."""

GATHERED_LAYERS = 2
"""The layer at work and the next one on its way."""

LOGIT_BYTES = STORED_BYTES + 2 * WORKING_BYTES
"""Bytes of one logit: as the head gives it, in the loss, and its gradient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationMemory:
    """Bytes of one device by what they are for."""

    weights_bytes: float  # as they are stored
    rotated_bytes: float  # of weights on their way through the rotation
    activations_bytes: float
    rotation_bytes: float  # with its gradient and moments

    @property
    def total_bytes(self) -> float:
        """All of it."""
        return self.weights_bytes + self.rotated_bytes + self.activations_bytes + self.rotation_bytes


def layer_wise(model: Model, calibration_tokens: float) -> RotationMemory:
    """One layer at a time: its weights, and what goes into its attention and its feed-forward part for all tokens."""
    seen = 2 * STORED_BYTES * model.hidden_size * calibration_tokens
    return RotationMemory(
        weights_bytes=STORED_BYTES * _of_layer(_largest(model)),
        rotated_bytes=0.0,
        activations_bytes=seen,
        rotation_bytes=_rotation_bytes(model),
    )


def end_to_end(model: Model, sequence_tokens: int, num_devices: int) -> RotationMemory:
    """Through the whole model, one sequence a device, everything that can be shared out shared out."""
    block = _largest(model)
    layer = _of_layer(block)
    widest = max(linear.num_parameters for linear in block.linears)
    inputs = STORED_BYTES * model.hidden_size * model.num_layers
    within = activations(model, sequence_tokens).all_bytes / model.num_layers
    return RotationMemory(
        weights_bytes=STORED_BYTES * (model.num_parameters / num_devices + GATHERED_LAYERS * layer),
        rotated_bytes=(EXACT_BYTES + 2 * STORED_BYTES) * layer + EXACT_BYTES * widest,
        activations_bytes=sequence_tokens * (inputs + within + LOGIT_BYTES * model.vocab_size),
        rotation_bytes=_rotation_bytes(model),
    )


def devices_end_to_end(model: Model, sequence_tokens: int, usable_bytes: float, num_devices_per_node: int = 8) -> int:
    """The fewest devices of one machine that it fits; numbers that share the machine out evenly."""
    for count in range(1, num_devices_per_node + 1):
        fits = end_to_end(model, sequence_tokens, count).total_bytes <= usable_bytes
        if num_devices_per_node % count == 0 and fits:
            return count
    need = end_to_end(model, sequence_tokens, num_devices_per_node).total_bytes
    raise OutOfRange(
        f"{model.name}: learning rotations end to end needs {need / 1e9:.0f} GB on each of {num_devices_per_node} "
        f"devices, has {usable_bytes / 1e9:.0f} GB; write more devices."
    )


def _largest(model: Model) -> Block:
    """The layers with the most weights."""
    return max(model.blocks, key=_of_layer)


def _of_layer(block: Block) -> float:
    """Weights of one layer."""
    return block.num_parameters / block.count


def _rotation_bytes(model: Model) -> float:
    """A square matrix of the model's width, as it is learned."""
    return ROTATION_COPIES * WORKING_BYTES * float(model.hidden_size) ** 2
