"""Test cases of a calibrated prediction, as data: unseen products, steps of small models, exchanges, and servers.

Shapes are drawn from a seed and know nothing of what a calibration measured. The rates of a server are shares of the
capacity that the prediction itself states, so whoever predicts makes a ``Load`` of a ``Server``.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orrery.calibrate.truth.server import Limits
from orrery.engine.streams import stream
from orrery.serving.requests import Requests
from orrery.serving.synthesis import Length, independent


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The sizes of a small Llama."""

    name: str
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    ffn_size: int
    vocab_size: int

    def config(self) -> dict[str, Any]:
        """Its config.json."""
        return {
            "model_type": "llama",
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.num_layers,
            "num_attention_heads": self.num_heads,
            "num_key_value_heads": self.num_kv_heads,
            "intermediate_size": self.ffn_size,
            "vocab_size": self.vocab_size,
            "max_position_embeddings": 2048,
            "tie_word_embeddings": False,
            "torch_dtype": "float32",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A matrix product of m x k by k x n."""

    m: int
    n: int
    k: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """One prompt, alone in a step."""

    network: Network
    prompt_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """Steps that give every one of ``batch_size`` sequences a token, behind ``context_tokens``."""

    network: Network
    batch_size: int
    context_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """An all-reduce of two processes on this machine."""

    message_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A model behind the server loop, and the requests that come: lengths between mean (1 - r) and mean (1 + r)."""

    network: Network
    input_tokens: int
    output_tokens: int
    range_ratio: float
    num_requests: int
    limits: Limits = field(default_factory=Limits)

    def load(self, request_rate_per_s: float) -> "Load":
        """Poisson arrivals at that rate."""
        return Load(server=self, request_rate_per_s=request_rate_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A server under load."""

    server: Server
    request_rate_per_s: float
    seed: int = 0

    def requests(self) -> Requests:
        """The schedule: the same for whoever predicts and for whoever measures."""
        s = self.server
        question, answer = (
            Length(mean_tokens=float(mean), law="uniform", range_ratio=s.range_ratio)
            for mean in (s.input_tokens, s.output_tokens)
        )
        return independent(s.num_requests, self.request_rate_per_s, self.seed, input=question, output=answer)


Case = Product | Prefill | Decode | Exchange | Load


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A suite of cases; every case is measured ``rounds`` times, a load ``load_rounds`` times."""

    products: tuple[Product, ...]
    steps: tuple[Prefill | Decode, ...]
    exchanges: tuple[Exchange, ...]
    servers: tuple[Server, ...]
    rounds: int
    load_rounds: int
    loads_frac: tuple[float, ...] = (0.3, 0.6, 0.85)  # of the capacity that the prediction states


MAX_ROWS, MIN_SIDE, MAX_SIDE, GRANULE, ODD_FRAC = 512, 64, 4096, 16, 0.2
"""Drawn products: m up to the first, n and k between the next two, multiples of the granule but for an odd share."""


def drawn_products(count: int, seed: int = 0) -> tuple[Product, ...]:
    """Products of any shape, evenly in the logarithms of their sides; more of them never change the first ones."""
    random = stream(seed, "products").random((count, 4))
    rows = np.rint(MAX_ROWS ** random[:, 0]).astype(int)
    sides = np.rint(MIN_SIDE * (MAX_SIDE / MIN_SIDE) ** random[:, 1:3]).astype(int)
    even = (random[:, 3] >= ODD_FRAC)[:, None]
    sides = np.where(even, sides // GRANULE * GRANULE, sides | 1)
    return tuple(Product(m=m, n=n, k=k) for m, (n, k) in zip(rows.tolist(), sides.tolist(), strict=True))


def exchanges(least_bytes: int, most_bytes: int, per_octave_frac: float) -> tuple[Exchange, ...]:
    """Messages of whole numbers of FP32 between these sizes, evenly in their logarithms."""
    count = round(np.log2(most_bytes / least_bytes) * per_octave_frac) + 1
    sizes = 4 * np.rint(np.geomspace(least_bytes / 4, most_bytes / 4, count)).astype(int)
    return tuple(Exchange(message_bytes=size) for size in sizes.tolist())


SMALL = Network(
    name="llama-256x4", hidden_size=256, num_layers=4, num_heads=8, num_kv_heads=4, ffn_size=704, vocab_size=2048
)
MIDDLE = Network(
    name="llama-512x6", hidden_size=512, num_layers=6, num_heads=8, num_kv_heads=2, ffn_size=1408, vocab_size=4096
)
WIDE = Network(
    name="llama-768x4", hidden_size=768, num_layers=4, num_heads=12, num_kv_heads=12, ffn_size=2048, vocab_size=8192
)
LARGE = Network(
    name="llama-1024x8", hidden_size=1024, num_layers=8, num_heads=16, num_kv_heads=4, ffn_size=2816, vocab_size=8192
)
NETWORKS = (SMALL, MIDDLE, WIDE, LARGE)
"""4 to 100 million parameters: from what a processor's cache holds to what it does not."""


def steps(
    networks: tuple[Network, ...], prompts: tuple[int, ...], batches: tuple[int, ...], contexts: tuple[int, ...]
) -> tuple[Prefill | Decode, ...]:
    """Every prompt alone, and every batch at every context, of every network."""
    prefills = (Prefill(network=n, prompt_tokens=p) for n in networks for p in prompts)
    decodes = (Decode(network=n, batch_size=b, context_tokens=c) for n in networks for b in batches for c in contexts)
    return (*prefills, *decodes)


TINY = Suite(
    products=drawn_products(5),
    steps=steps((SMALL,), prompts=(24, 200), batches=(1, 12), contexts=(150,)),
    exchanges=exchanges(1 << 12, 1 << 22, 0.2),
    servers=(Server(network=SMALL, input_tokens=96, output_tokens=24, range_ratio=0.45, num_requests=16),),
    rounds=1,
    load_rounds=1,
    loads_frac=(0.4,),
)
"""A few seconds: for the default tests."""

QUICK = Suite(
    products=drawn_products(10),
    steps=steps((SMALL, MIDDLE), prompts=(24, 200), batches=(1, 3, 12), contexts=(150,)),
    exchanges=exchanges(1 << 10, 1 << 24, 0.5),
    servers=(Server(network=SMALL, input_tokens=96, output_tokens=24, range_ratio=0.45, num_requests=32),),
    rounds=3,
    load_rounds=3,
)
"""Under a minute: for a user who wants to know."""

LONG = Suite(
    products=drawn_products(60),
    steps=steps(NETWORKS, prompts=(16, 50, 128, 300, 512), batches=(1, 2, 5, 8, 16), contexts=(40, 200, 500)),
    exchanges=exchanges(1 << 10, 1 << 24, 2.0),
    servers=(
        Server(network=SMALL, input_tokens=96, output_tokens=24, range_ratio=0.45, num_requests=150),
        Server(network=SMALL, input_tokens=32, output_tokens=64, range_ratio=0.45, num_requests=100),
        Server(network=MIDDLE, input_tokens=190, output_tokens=16, range_ratio=0.45, num_requests=60),
    ),
    rounds=3,
    load_rounds=2,
)
"""Minutes: for the benchmark."""
