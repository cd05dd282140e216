"""A precision recipe: which products run in which format, what is kept in 16 bits, and the casts that come with it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Formats of a training step; bytes are of one element or parameter.

    One recipe is one file in ``recipes``, whose comments say where its numbers come from.

    The three products of a linear layer are y = x W^T (forward), dx = dy W (input gradient), dW = dy^T x (weight
    gradient). A cast is an element-wise pass that reads an element in 16 bits and writes it in the narrow format; work
    that reads more often (to find the largest value first) or writes twice (the transpose too) counts by its bytes.
    """

    name: str
    title: str
    forward_format: str
    input_gradient_format: str
    weight_gradient_format: str
    wide_format: str = "bf16"  # attention, norms, head, and layers that stay wide
    wide_layers_frac: float = 0.0  # share of the layers whose linear layers stay wide
    saved_input_bytes: float = 2.0  # what a linear layer keeps of its input for the backward pass
    weights_bytes: float = 0.0  # of the copy that is kept and computed with; 0 = the framework's
    weight_copy_bytes: float = 0.0  # narrow copies of the weights beside the wide ones, kept all the time
    gathered_weight_bytes: float = 2.0  # what sharded parameters travel in
    gradient_wire_bytes: float = 0.0  # what gradients travel in; 0 = as the framework keeps them
    gradient_bytes: float = 0.0  # 0 = the framework's
    master_bytes: float = -1.0  # 32-bit copy of the weights; below 0 = the framework's
    moments_bytes: float = 0.0  # both moments of Adam; 0 = the framework's
    keeps_inputs_apart: bool = False  # linear layers of the same input each keep a copy that was rounded for them
    input_casts: float = 0.0  # passes over the input of each linear layer, forward
    input_gradient_casts: float = 0.0  # passes over the gradient of that input, backward: of a norm of its own
    gradient_casts: float = 0.0  # passes over the gradient of its output, backward
    weight_casts: float = 0.0  # passes over its weights, once a step
    num_amax_reduces: int = 0  # scales of whole tensors are agreed on by all ranks, so many times a step
    aliases: tuple[str, ...] = ()  # other spellings
    sources: tuple[str, ...] = ()

    @property
    def is_narrow(self) -> bool:
        """Whether products run in fewer than 16 bits."""
        return self.forward_format != self.wide_format

    @property
    def rounds(self) -> bool:
        """Whether linear layers round what they multiply, be it only to the values of a narrow format."""
        return self.is_narrow or self.input_casts > 0.0
