"""HybriMoE: three mixtures between one device and its host, prompts and answers, shared out fixed and greedily."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.batch import Batch
from orrery.execution.host_rates import HOST_MEMORY_FRAC, copy_bytes_per_s
from orrery.execution.layout import Deployment
from orrery.execution.step import step
from orrery_papers.shared.layer_costs import words
from orrery_papers.shared.passes import decodes, prompts
from orrery_papers.shared.setup import deployment

DIFFERS = (
    "prompts of 32 tokens, of which each expert gets so few that the host is quicker with them than the link: the "
    "baseline brings them all the same, by its rules; prompts of 512 and 1024 gain {long:.2f}"
)


BASELINE = {"expert_offload": "host-compute", "expert_schedule": "fixed", "expert_cache": "layers"}
"""Answers: whole layers of experts on the device, all others computed by the host (baseline_policy)."""

PROMPTS_ALONE = {"expert_offload": "host", "expert_cache": "layers"}
"""Prompts: the device computes all, and experts of the other layers cross the link."""

LONG_TOKENS = 512


def predict(paper: Paper) -> Iterator[Prediction]:
    """Mean gains over models, kept shares and lengths, and what each of the three parts adds."""
    claims = {claim.id: claim for claim in paper.claims}
    setup = claims["decode"].setup
    cases = list(product(words(setup.word("models")), setup.numbers("cached_fracs_swept")))
    context = np.array([int(setup.number("max_context_tokens"))])
    one = decodes(np.array([1]), context)
    gains = [gain(setup, model, cached_frac, one) for model, cached_frac in cases]
    alone = {
        name: float(np.mean([gain(setup, model, cached_frac, one, name) for model, cached_frac in cases]))
        for name in ("expert_schedule", "expert_cache", "expert_prefetch")
    }
    without = ", ".join(f"without {name.removeprefix('expert_')} {value:.2f}" for name, value in alone.items())
    yield Prediction(
        claim="decode",
        predicted=float(np.mean(gains)),
        because=f"{len(gains)} cases, {min(gains):.2f} to {max(gains):.2f}: what is kept follows the tokens, and host, "
        f"link and device share each layer; {without}",
        differs=_one_token(setup),
    )
    lengths = [int(n) for n in setup.numbers("input_tokens_swept")]
    prefill, by_host = (
        {
            (model, cached_frac, n): gain(setup, model, cached_frac, prompts(np.array([n])), baseline=baseline)
            for (model, cached_frac), n in product(cases, lengths)
        }
        for baseline in (PROMPTS_ALONE, BASELINE)
    )
    gains, long = list(prefill.values()), [x for (_, _, n), x in prefill.items() if n >= LONG_TOKENS]
    yield Prediction(
        claim="prefill",
        predicted=float(np.mean(gains)),
        because=f"{len(gains)} cases, {min(gains):.2f} to {max(gains):.2f}: large loads cross the link while the "
        f"host computes small ones; {np.mean(list(by_host.values())):.2f} where the baseline's host computes prompts",
        differs=DIFFERS.format(long=float(np.mean(long))),
    )


def _one_token(setup: Setup) -> str:
    """Why one token gains so little: what the link can take from the host."""
    link = copy_bytes_per_s(get_device(setup.word("device")))
    host = setup.number("host_memory_bytes_per_s") * HOST_MEMORY_FRAC
    return (
        "the baseline, which loses nothing to its own runtime here, and how often tokens repeat their experts (see the "
        f"curve), of which no measurement was found: the link brings {link / 1e9:.0f} GB/s while the host reads "
        f"{host / 1e9:.0f}, so that sharing alone makes missing experts at most {1.0 + link / host:.2f} times as fast"
    )


def gain(
    setup: Setup,
    model: str,
    cached_frac: float,
    batch: Batch,
    left_out: str = "",
    baseline: Mapping[str, str] = BASELINE,
) -> float:
    """Speedup of one step by all three parts, or by all but one."""
    shared = {"expert_schedule": "greedy", "expert_cache": "score", "expert_prefetch": setup.number("prefetch_frac")}
    parts = {name: value for name, value in shared.items() if name != left_out}
    if left_out == "expert_schedule":
        parts["expert_schedule"] = "fixed"
    return step_s(local(setup, model, cached_frac, **baseline), batch) / step_s(
        local(setup, model, cached_frac, **parts), batch
    )


def local(setup: Setup, model: str, cached_frac: float, **parts: Any) -> Deployment:
    """The mixture on the set-up's device, with these parts."""
    computes: dict[str, Any] = {
        "host_flops_per_s": setup.number("num_host_flops_per_s"),
        "host_memory_bytes_per_s": setup.number("host_memory_bytes_per_s"),
    }
    given: dict[str, Any] = {"expert_offload": "host-compute", **parts}
    return deployment(
        setup,
        model=model,
        expert_cached=cached_frac,
        expert_repeat=setup.number("repeat_frac"),
        **given,
        **(computes if given["expert_offload"] == "host-compute" else {}),
    )


def step_s(served: Deployment, batch: Batch) -> float:
    """Seconds of one step, the host's own part included."""
    return served.engine.step_s + float(step(served, batch).time_s[0])
