"""HybriMoE: three mixtures between one device and its host, prompts and answers, shared out fixed and greedily."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from orrery import kernels
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.batch import Batch, Floats, Ints
from orrery.execution.experts.hybrid import Shares, Trace, decoded_fixed, decoded_greedy, fixed, greedy
from orrery.execution.layout import Deployment
from orrery.execution.offload.tiers import HOST_MEMORY_FRAC
from orrery.execution.step import step
from orrery.execution.transfer import HOST_RATE_FRAC
from orrery.kernels.ops import Gemm
from orrery.models.model import Experts
from orrery.numerics.registry import get_format
from orrery_papers.shared.layer_costs import words
from orrery_papers.shared.passes import decodes, prompts
from orrery_papers.shared.setup import deployment

DIFFERS = (
    "how much the host reaches and how much tokens repeat experts, neither of which was found: products of 4-bit "
    "weights on integer vectors may be several times as fast as the share of the FP32 peak taken here, which is what "
    "prompts wait for, and the baseline loses nothing to its own runtime"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Local:
    """One mixture on the set-up's device and host."""

    setup: Setup
    served: Deployment

    @property
    def experts(self) -> Experts:
        """Experts of a layer."""
        return next(b.experts for b in self.served.model.blocks if b.experts)

    @property
    def layers(self) -> int:
        """Number of layers that have experts."""
        return sum(b.count for b in self.served.model.blocks if b.experts)

    @property
    def shares(self) -> Shares:
        """What an expert takes where; the host streams its weights or computes, whichever is longer."""
        setup, e, device = self.setup, self.experts, self.served.cluster.device
        held = e.num_parameters_each * get_format(setup.word("weights_format")).bytes_per_element
        memory = setup.number("host_memory_bytes_per_s") * HOST_MEMORY_FRAC
        most = int(max(setup.numbers("input_tokens_swept")))
        sizes = np.unique(np.rint(2.0 ** np.arange(0.0, np.log2(most) + 1.0)).astype(np.int64))
        table = self._products_s(sizes)
        flops = setup.number("num_host_flops_per_s")

        @cache
        def device_s(n: int) -> float:
            return float(np.interp(n, sizes, table))

        return Shares(
            device_s=device_s,
            host_s=lambda n: max(held / memory, 2.0 * n * e.num_parameters_each / flops),
            load_s=held / (device.host.each_way_bytes_per_s * HOST_RATE_FRAC),
        )  # fmt: skip

    def _products_s(self, tokens: Ints) -> Floats:
        e, device, form = self.experts, self.served.cluster.device, self.setup.word("weights_format")
        up = Gemm(m=tokens, n=2 * e.ffn_size, k=e.hidden_size, format=form, quantises_input=False)
        down = Gemm(m=tokens, n=e.hidden_size, k=e.ffn_size, format=form, quantises_input=False)
        return kernels.predict(up, device).time_s + kernels.predict(down, device).time_s

    def other_s(self, batch: Batch) -> float:
        """All but the experts of a pass, the host's part included."""
        engine = self.served.engine
        parts = step(self.served, batch).parts
        return engine.step_s + sum(float(p.time_s[0]) for p in parts if p.op != "moe")


def predict(paper: Paper) -> Iterator[Prediction]:
    """Mean gains over models, kept shares and lengths."""
    claims = {claim.id: claim for claim in paper.claims}
    setup = claims["decode"].setup
    locals_ = [Local(setup=setup, served=deployment(setup, model=m)) for m in words(setup.word("models"))]
    retained = setup.numbers("cached_fracs_swept")
    answers = {(x.served.model.name, k): decode_gain(x, k) for x, k in product(locals_, retained)}
    yield Prediction(
        claim="decode", predicted=float(np.mean(list(answers.values()))),
        because=f"{len(answers)} cases, {min(answers.values()):.2f} to {max(answers.values()):.2f}: what is kept "
        "follows the tokens, and host, link and device share each layer",
        differs=DIFFERS,
    )  # fmt: skip
    lengths = setup.numbers("input_tokens_swept")
    prefill = [prefill_gain(x, k, int(n)) for x, k, n in product(locals_, retained, lengths)]
    yield Prediction(
        claim="prefill", predicted=float(np.mean(prefill)),
        because=f"{len(prefill)} cases, {min(prefill):.2f} to {max(prefill):.2f}: large loads cross the link while the "
        "host computes small ones",
        differs=DIFFERS,
    )  # fmt: skip


def decode_gain(x: Local, retained: float) -> float:
    """Speedup of a run of single tokens."""
    setup, e = x.setup, x.experts
    trace = Trace(
        num_layers=x.layers, num_experts=e.num_experts, experts_per_token=e.experts_per_token,
        repeat_frac=setup.number("repeat_frac"), num_tokens=int(setup.number("output_tokens")),
    )  # fmt: skip
    context = np.array([int(setup.number("max_context_tokens"))])
    other_s = x.other_s(decodes(np.array([1]), context))
    shares = x.shares
    plain = decoded_fixed(trace, shares, retained) + trace.num_tokens * other_s
    shared = decoded_greedy(trace, shares, retained, other_s / x.layers) + trace.num_tokens * other_s
    return plain / shared


def prefill_gain(x: Local, retained: float, tokens: int) -> float:
    """Speedup of a prompt whose tokens choose experts at random, by a popularity of its own in each layer."""
    e, shares, draws = x.experts, x.shares, np.random.default_rng(0)
    held = frozenset(range(round(retained * e.num_experts)))
    plain = shared = x.other_s(prompts(np.array([tokens])))
    for _ in range(x.layers):
        scores = draws.standard_normal(e.num_experts) + draws.standard_normal((tokens, e.num_experts))
        chosen = np.argpartition(-scores, e.experts_per_token - 1, axis=1)[:, : e.experts_per_token]
        counts = np.bincount(chosen.ravel(), minlength=e.num_experts)
        work = {i: n for i, n in enumerate(counts.tolist()) if n}
        plain += fixed(work, held, shares).time_s
        shared += greedy(work, held, shares).time_s
    return plain / shared
