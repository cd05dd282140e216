"""The reference model in PyTorch, on any of its devices: the same weights, steps and shapes as in NumPy."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from orrery.base.errors import OrreryError
from orrery.calibrate.measure import torch_kernels as kernels
from orrery.calibrate.measure.torch_kernels import Tensor
from orrery.calibrate.truth.transformer import LINEARS, Cache, Tokens, Transformer, Work

GAINS = ("attention_gain", "feed_gain")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TorchTransformer:
    """The weights on a device and the way through them."""

    plain: Transformer  # the sizes
    torch: Any
    embedding: Tensor
    layers: tuple[dict[str, Tensor], ...]  # by the names of ``Layer``
    final_gain: Tensor
    head: Tensor
    turns: tuple[Tensor, Tensor]

    @property
    def vocab_size(self) -> int:
        """How many tokens there are."""
        return self.plain.vocab_size

    def new_cache(self, capacity_tokens: int) -> Cache:
        """Room for one sequence, with a batch axis of one behind that of layers."""
        a = self.plain.attention
        shape = (len(self.layers), 1, a.num_kv_heads, capacity_tokens, a.head_size)
        return Cache(keys=self.embedding.new_zeros(shape), values=self.embedding.new_zeros(shape))

    def logits(self, work: Work) -> Tensor:
        """One step, as in ``Transformer.logits``."""
        new_tokens = np.concatenate([tokens for _, tokens in work])
        x = self.embedding[self._on_device(new_tokens)]
        residual = self.torch.zeros_like(x)
        for number, layer in enumerate(self.layers):
            x = kernels.product(kernels.norm(x, residual, layer["attention_gain"]), layer["qkv"])
            x = kernels.product(self._mixed(x, work, number), layer["out"])
            x = kernels.product(kernels.norm(x, residual, layer["feed_gain"]), layer["gate_up"])
            x = kernels.product(kernels.gated_activation(x), layer["down"])
        for cache, tokens in work:
            cache.num_tokens += len(tokens)
        last = self._on_device(np.cumsum([len(tokens) for _, tokens in work]) - 1)
        return kernels.product(kernels.norm(x[last], residual[last], self.final_gain), self.head)

    def step(self, work: Work) -> Tokens:
        """One step with its sampling; returns once the device has the tokens."""
        with self.torch.inference_mode():
            return kernels.sample(self.logits(work)).cpu().numpy()

    def _on_device(self, numbers: Tokens) -> Tensor:
        return self.torch.from_numpy(numbers).to(self.embedding.device)

    def _mixed(self, qkv: Tensor, work: Work, layer: int) -> Tensor:
        """Attention of every sequence over its own cache."""
        a, start = self.plain.attention, 0
        mixed: list[Tensor] = []
        heads = qkv.unflatten(1, (-1, a.head_size)).unsqueeze(0)
        for cache, tokens in work:
            query, key, value = heads[:, start : start + len(tokens)].split(
                (a.num_heads, a.num_kv_heads, a.num_kv_heads), dim=2
            )
            mixed.append(
                kernels.attend(query, key, value, cache.keys[layer], cache.values[layer], self.turns, cache.num_tokens)[
                    0
                ]
            )
            start += len(tokens)
        return self.torch.cat(mixed) if len(mixed) > 1 else mixed[0]


def on_torch(model: Transformer, device: str = "cpu", dtype: str = "float32") -> TorchTransformer:
    """The same model on a device of PyTorch's ("cpu", "cuda", "mps"), its numbers in ``dtype``."""
    torch: Any = kernels.load()
    if torch is None:
        raise OrreryError("The reference model in PyTorch needs PyTorch, which is not installed: pip install torch.")

    def tensor(array: Any) -> Tensor:
        return torch.from_numpy(array).to(device=device, dtype=getattr(torch, dtype))

    embedding = tensor(model.embedding)
    return TorchTransformer(
        plain=model,
        torch=torch,
        embedding=embedding,
        final_gain=tensor(model.final_gain),
        head=tensor(model.head),
        layers=tuple({name: tensor(getattr(x, name)) for name in (*LINEARS, *GAINS)} for x in model.layers),
        turns=kernels.turns(model.attention.head_size, model.model.max_context_tokens, embedding),
    )
