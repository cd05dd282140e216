"""NF4: 16 normal quantiles by groups of 64."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="nf4",
    title="NF4: 16 normal quantiles by groups of 64",
    kind="lookup",
    element=get_element("nf4"),
    scaling=Scaling(levels=(Level(share=(1, 64)),)),
    rates=("bf16", "fp16"),
    weight_only=True,
    aliases=("bnb4bit", "bitsandbytes4bit", "bnbnf4"),
    source="QLoRA, arXiv:2305.14314",
)
