"""Compute and memory of one device in a training step: equal layers in a row, and the modules around them."""

from dataclasses import dataclass

from orrery.base.errors import ScenarioError


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Seconds and bytes are of one layer and one micro-batch unless a name says otherwise; all of this device's part.

    ``boundary_bytes`` pass from layer to layer; ``activation_bytes`` are all that a backward pass reads. Of them
    ``kept_bytes`` are the outputs of products and attention: whoever keeps these recomputes nothing but elementwise
    work. Without them ``recompute_s`` are run again: all products whose output the same layer reads.
    """

    num_layers: int
    num_layer_parameters: float
    num_outer_parameters: float  # embeddings, head, last norm
    forward_s: float
    backward_s: float
    weight_gradient_s: float  # part of backward_s that makes gradients of weights
    recompute_s: float
    outer_forward_s: float
    outer_backward_s: float
    activation_bytes: float
    kept_bytes: float
    boundary_bytes: float
    logits_bytes: float
    num_largest_parameters: float  # of the largest single weight
    num_adapter_parameters: float = 0.0  # of low-rank adapters of rank one on every linear layer of all layers
    num_micro_batches: int = 1
    parameter_bytes: float = 2.0
    gradient_bytes: float = 2.0
    state_bytes: float = 12.0  # FP32 copy and two moments of Adam; 8 where the parameters are FP32 themselves

    def __post_init__(self) -> None:
        for name in ("num_layers", "num_micro_batches"):
            if (got := getattr(self, name)) < 1:
                raise ScenarioError(f"{name} = {got} in Work; write 1 or more.")

    @property
    def num_parameters(self) -> float:
        """All of this device."""
        return self.num_layers * self.num_layer_parameters + self.num_outer_parameters

    @property
    def layer_bytes(self) -> float:
        """The parameters of one layer."""
        return self.num_layer_parameters * self.parameter_bytes

    @property
    def checkpoint_bytes(self) -> float:
        """Bytes of every layer's input where only these are kept."""
        return self.num_layers * self.boundary_bytes

    @property
    def update_bytes(self) -> float:
        """Memory traffic of updating one parameter: gradient and states in, states and the 16-bit copy out.

        2 + 12 + 12 + 2 = 28 in mixed precision; 4 + 12 + 12 in FP32 (the parameter is one of the three states).
        """
        if self.parameter_bytes >= 4.0:
            return self.gradient_bytes + 2.0 * (self.state_bytes + self.parameter_bytes)
        return self.gradient_bytes + 2.0 * self.state_bytes + self.parameter_bytes
