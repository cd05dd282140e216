"""NanoFlow and the engines that it is compared with: how each is deployed, and what it serves offline."""

from functools import cache

from orrery.evidence.paper_file import Setup, get_paper
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.serving.requests import Requests
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate
from orrery_papers.shared.setup import deployment

KEY = "nanoflow"

BASELINES = {
    "vllm": ("vllm", "0.5.3", "chunked-prefill", (512,)),
    "deepspeed-fastgen": ("deepspeed-mii", "0.2.3", "chunked-prefill", (512, 1024, 2048, 4096)),
    "tensorrt-llm": ("tensorrt-llm", "0.8.0", "", (8192,)),
}
"""The baselines' engines, versions, policies, and token budgets (of several the best): see [unstated] baselines."""

OURS = ("vllm", "0.14")
"""NanoFlow's host: an engine of the catalogue that schedules ahead; see [unstated] host."""


def dense(words: Setup, model: str = "", layout: str = "") -> Deployment:
    """The set-up's model under NanoFlow, at the set-up's dense batch."""
    tokens, sequences = (int(words.number(n)) for n in ("max_num_batched_tokens", "max_num_seqs"))
    return _deployed(words.name, *OURS, tokens, sequences, model, layout)


@cache
def _deployed(
    setup: str, engine: str, version: str, tokens: int, sequences: int = 0, model: str = "", layout: str = ""
) -> Deployment:
    """One object for equal deployments, so that their tables keep."""
    return deployment(
        get_paper(KEY).setups[setup],
        model=model,
        layout=layout,
        engine=engine,
        version=version,
        max_num_batched_tokens=tokens,
        max_num_seqs=sequences,
    )


def baseline(words: Setup, name: str, load: Requests) -> float:
    """A baseline's tokens a second and device, steps in sequence, under the engine's own limit of sequences."""
    engine, version, policy, budgets = BASELINES[name]
    runs = [served(_deployed(words.name, engine, version, tokens), load, "sequential", policy) for tokens in budgets]
    return max(runs)


def served(d: Deployment, load: Requests, overlap: str, policy: str = "chunked-prefill") -> float:
    """Prompt and answer tokens a second and device of an offline run."""
    out = offline(d, load, overlap, policy)
    if isinstance(out, Infeasible):
        return 0.0
    return float((load.input_tokens + load.output_tokens).sum()) / out.duration_s / d.layout.num_devices


@cache
def offline(d: Deployment, load: Requests, overlap: str, policy: str) -> Simulated | Infeasible:
    """The run itself: everything a deployment makes of some requests, without a prefix cache."""
    service = Service(pools=(Pool(deployment=d),), policy=policy, overlap=overlap, prefix_caching=False)
    return simulate(service, load)
