"""Notes on kernels of attention and of dense products that are asked for by name."""

from dataclasses import replace

from orrery.execution.choice import chosen
from orrery.execution.engine import Kind
from orrery.execution.layout import Backends, Deployment
from orrery.execution.mixing import takes_turns
from orrery.models.model import SoftmaxAttention


def attention_notes(deployment: Deployment) -> list[str]:
    """Notes on a requested attention whose numbers are not measured ones of its own."""
    name, device = deployment.backends.attention, deployment.cluster.device
    attends = any(isinstance(b.mixer, SoftmaxAttention) for b in deployment.model.blocks)
    if attends and takes_turns(deployment):
        return [
            f"attention_backend: {name} does not use the asynchronous matrix instructions of {device.generation}: "
            "prompts' exponentials wait for their products, by the rates of instructions (arXiv 2407.08608)"
        ]
    return _unmeasured(deployment, "attention", ("attention", "mla"), "attention")


def product_notes(deployment: Deployment) -> list[str]:
    """Notes on requested kernels of dense products whose numbers are not measured ones of their own."""
    return _unmeasured(deployment, "gemm", ("gemm",), "products")


def _unmeasured(deployment: Deployment, kind: Kind, ops: tuple[str, ...], noun: str) -> list[str]:
    name, device = getattr(deployment.backends, kind), deployment.cluster.device
    usual = (c.backend for c in chosen(replace(deployment, backends=Backends())).get(kind, ()))
    measured = (maker for op, _, maker in device.calibrations if op.startswith(ops))
    if name in {*usual, *measured}:
        return []
    return [
        f"{kind}_backend: nothing was measured of {name} on {device.name}: the constants of the engine's own "
        f"{noun} answer, whatever it runs, and no number changes"
    ]
