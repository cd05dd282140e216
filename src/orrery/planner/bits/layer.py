"""The layers that a format is chosen for: those of a model, or any list of products."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from orrery.kernels.ops import Gemm, MoE
from orrery.models.model import Block, Linear, Model

ANY_FORMAT = "bf16"
"""Format of a layer's work before one is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layer:
    """One choice: a product (or a block of experts), what it weighs, and what is known of it by format.

    ``tied`` layers share one choice: those that carry the same word, such as the two paths of a residual block.
    """

    name: str
    group: str  # layers of one kind, for tables
    work: Gemm | MoE  # whatever its format says
    num_parameters: int
    count: int = 1  # equal products in a row that share the choice
    tied: str = ""
    weight_ratio: float = 1.0  # what a squared error counts: mean trace of the Hessian, or a Fisher weight
    errors: Mapping[str, float] = field(default_factory=dict[str, float])  # squared error of the weights, by format
    perturbations: Mapping[str, float] = field(default_factory=dict[str, float])  # as they are, by format
    times_s: Mapping[str, float] = field(default_factory=dict[str, float])  # as measured, by format


def layers_of(model: Model, tokens: int, kept_16bit: bool = True) -> tuple[Layer, ...]:
    """Every linear layer and block of experts of a model for so many tokens in a step.

    ``kept_16bit``: roles that published recipes leave in 16 bits (router, head) are no choice and are left out.
    """
    retained = model.kept_16bit_roles if kept_16bit else frozenset[str]()
    found = [layer for block in model.blocks for layer in _block(block, tokens, retained)]
    if model.head and model.head.role not in retained:
        found.append(_linear(model.head, "head", "head", tokens))
    return tuple(found)


def product(m: int, n: int, k: int, groups: int = 1) -> Gemm:
    """A product whose input is quantised by what runs before it, as engines do."""
    return Gemm(m=m, n=n, k=k, batch=groups, format=ANY_FORMAT, quantises_input=False)


def _block(block: Block, tokens: int, retained: frozenset[str]) -> Iterator[Layer]:
    for index in range(block.count):
        for linear in block.linears:
            if linear.role not in retained:
                yield _linear(linear, f"{block.name}.{index}.{linear.name}", f"{block.name} {linear.name}", tokens)
        if experts := block.experts:
            work = MoE(
                tokens=tokens,
                hidden_size=experts.hidden_size,
                ffn_size=experts.ffn_size,
                num_experts=experts.num_experts,
                experts_per_token=experts.experts_per_token,
                format=ANY_FORMAT,
                is_gated=experts.is_gated,
            )
            yield Layer(
                name=f"{block.name}.{index}.experts",
                group=f"{block.name} experts",
                work=work,
                num_parameters=experts.num_experts * experts.num_parameters_each,
            )


def _linear(linear: Linear, name: str, group: str, tokens: int) -> Layer:
    groups = linear.groups
    work = product(tokens, linear.out_features // groups, linear.in_features // groups, groups)
    return Layer(name=name, group=group, work=work, num_parameters=linear.num_parameters)
