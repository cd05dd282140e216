"""Sarathi-Serve: the highest rate under a limit on the gaps between tokens, by how prompts are mixed with answers."""

from collections.abc import Iterator
from functools import cache

from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.memory import Infeasible
from orrery.serving.capacity import highest_rate
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate
from orrery_papers.sarathi_serve.ablation import ablation, pieces
from orrery_papers.sarathi_serve.systems import CONTEXT_TOKENS, COUNT, SEQS, served_on, service, traffic
from orrery_papers.shared.objectives import first_token_s, gap_s, queued_s
from orrery_papers.shared.setup import all_equal


def capacity(served: Service, setup: Setup, limit_s: float, count: int = COUNT) -> float:
    """The highest rate with 99 % of the gaps within the limit, and half the requests started within two seconds."""
    percent = 100.0 * setup.number("slo_percentile_frac")

    def meets(run: Simulated) -> bool:
        return gap_s(run, percent) <= limit_s and queued_s(run) <= setup.number("slo_queue_p50_s")

    return highest_rate(lambda r: traffic(setup, r, count), lambda q: simulate(served, q), meets, 0.1, 1.0, 0.03)


class Bench:
    """The capacities of one paper's set-ups, each found once."""

    def __init__(self, paper: Paper) -> None:
        """Start with no capacity searched."""
        self.setups = paper.setups
        self.capacity = cache(self._capacity)

    def _capacity(self, name: str, system: str, limit_s: float, budget_tokens: int, layout: str = "") -> float:
        setup = self.setups[name]
        return capacity(service(setup, system, budget_tokens, layout), setup, limit_s)

    def ratio(self, setup: Setup, baseline: str, layout: str = "") -> tuple[float, str]:
        """Capacity of chunked prefill over a baseline's, at the set-up's limit and budget, and both rates as text."""
        limit_s, budget = setup.number("slo_tbt_s"), int(setup.number("max_num_batched_tokens"))
        ours = self.capacity(setup.name, "sarathi", limit_s, budget)
        theirs = self.capacity(setup.name, baseline, limit_s, budget, layout)
        return ours / theirs if theirs else float("inf"), f"{ours:.3g} against {theirs:.3g} requests/s"

    def relaxed(self, name: str, baseline: str) -> float:
        """The ratio under the relaxed objective."""
        setup = self.setups[name]
        limit_s, budget = setup.number("slo_relaxed_tbt_s"), int(setup.number("relaxed_max_num_batched_tokens"))
        ours, theirs = (self.capacity(name, x, limit_s, budget) for x in ("sarathi", baseline))
        return ours / theirs if theirs else float("inf")


BASELINES = ("orca", "vllm")


def predict(paper: Paper) -> Iterator[Prediction]:
    """Capacity ratios of every set-up, Falcon's capacities, the price of chunks, and each half of it alone."""
    bench = Bench(paper)
    for claim in paper.claims:
        if claim.metric == "capacity_ratio" and "headline" not in claim.id:
            baseline = "orca" if claim.baseline.startswith("orca") else "vllm"
            found, words = bench.ratio(claim.setup, baseline, claim.setup.word("baseline_layout"))
            yield Prediction(claim=claim.id, predicted=found, because=words, differs=LENGTHS)
        elif claim.metric in ("capacity", "baseline_capacity"):
            yield _rate(bench, claim)
    for model in ("mistral", "yi", "falcon"):
        yield _headline(bench, paper, f"{model}-headline", ("vllm",))
    yield _headline(bench, paper, "falcon-headline-first", BASELINES)
    yield from _lone(paper)
    yield from ablation(paper)
    yield from pieces(paper)


LENGTHS = "the lengths: log-normal through two quantiles; and the host time of a vLLM of early 2024, not measured here"


def _rate(bench: Bench, claim: Claim) -> Prediction:
    setup, system = claim.setup, "vllm" if claim.metric.startswith("baseline") else "sarathi"
    limit_s, budget = setup.number("slo_tbt_s"), int(setup.number("max_num_batched_tokens"))
    layout = setup.word("baseline_layout" if system == "vllm" else "layout")
    found = bench.capacity(setup.name, system, limit_s, budget, layout)
    return Prediction(claim=claim.id, predicted=found, because=f"{system} on {layout}", differs=LENGTHS)


def _headline(bench: Bench, paper: Paper, id: str, baselines: tuple[str, ...]) -> Prediction:
    """ "Up to": the best of both data sets and both objectives."""
    setup = next(c.setup for c in paper.claims if c.id == id)
    names = (setup.name, setup.name.replace("chat", "arxiv"))
    found = {f"{name}, strict, against {b}": bench.ratio(paper.setups[name], b)[0] for name in names for b in baselines}
    found |= {f"{name}, relaxed, against {b}": bench.relaxed(name, b) for name in names for b in baselines}
    best = max(found, key=lambda x: found[x])
    return Prediction(claim=id, predicted=found[best], because=f"best in {best}", differs=LENGTHS)


def _lone(paper: Paper) -> Iterator[Prediction]:
    """Single prompts and steps of answers only."""
    for claim in paper.claims:
        setup = claim.setup
        if claim.id.startswith("chunk-overhead"):
            chunk = int(setup.number("chunk_tokens"))
            found = max(slower_in_chunks(setup, int(n), chunk) for n in setup.numbers("input_tokens_swept"))
            yield Prediction(claim=claim.id, predicted=found, because="the slowest of the prompts", differs=ATTENTION)
        elif claim.id == "tile-257":
            chunk = int(setup.number("chunk_tokens"))
            odd, even = (lone_prompt_s(setup, CONTEXT_TOKENS, n) for n in (chunk, chunk - 1))
            words = f"a prompt of {CONTEXT_TOKENS}: {odd:.3g} s against {even:.3g} s"
            yield Prediction(claim=claim.id, predicted=odd / even - 1.0, because=words, differs=TILES)
        elif claim.id == "falcon-prefill-4k":
            found = lone_prompt_s(setup, int(setup.number("input_tokens")), int(setup.number("max_context_tokens")))
            yield Prediction(claim=claim.id, predicted=found, because="tp4 over PCIe", differs=PCIE)
        elif claim.id.startswith(("falcon-decode", "falcon-step")):
            found = decode_step_s(setup, int(setup.number("num_batch")))
            yield Prediction(claim=claim.id, predicted=found, because="answers behind prompts of 4K", differs=ETHERNET)
        elif claim.id == "falcon-tp8-tbt":
            wide, deep = (decode_step_s(setup, 32, layout) for layout in ("tp8", "tp4 pp2"))
            words = f"{wide:.3g} s against {deep:.3g} s, 32 answers"
            yield Prediction(claim=claim.id, predicted=wide / deep, because=words, differs=ETHERNET)


ATTENTION = (
    "chunked attention: the kernels of early 2024 read the cache of earlier chunks less well than those measured"
)

TILES = (
    "the kernel of products: a library with tiles of many sizes takes a smaller one for the last token; the paper's "
    "kernels lost a whole tile of rows in every product"
)

ETHERNET = (
    "the start of a message over Ethernet, twice a layer: not stated and not measured; here as over InfiniBand; and "
    "the engine's host time over two nodes"
)

PCIE = "the all-reduce: pairs have NVLink in the paper's machines, here four devices talk over PCIe alone"


def lone_prompt_s(setup: Setup, tokens: int, budget_tokens: int) -> float:
    """One prompt on an idle engine, without the front end's time."""
    d = served_on(setup, layout=setup.word("layout"), budget_tokens=budget_tokens, max_num_seqs=SEQS)
    run = simulate(Service(pools=(Pool(deployment=d),), policy="chunked-prefill"), all_equal(tokens, 1, 1.0, 1))
    return float("nan") if isinstance(run, Infeasible) else first_token_s(run, 50.0) - d.engine.entry_s(tokens)


def slower_in_chunks(setup: Setup, tokens: int, chunk_tokens: int) -> float:
    """By how much a prompt takes longer in chunks than whole."""
    return lone_prompt_s(setup, tokens, chunk_tokens) / lone_prompt_s(setup, tokens, tokens) - 1.0


def decode_step_s(setup: Setup, batch: int, layout: str = "") -> float:
    """The gap between tokens of so many answers, without prompts beside them."""
    d = served_on(setup, layout=layout or setup.word("layout"), budget_tokens=CONTEXT_TOKENS, max_num_seqs=SEQS)
    sent = all_equal(CONTEXT_TOKENS, 400, float("inf"), batch)
    run = simulate(Service(pools=(Pool(deployment=d),), policy="prefill-first"), sent)
    return float("nan") if isinstance(run, Infeasible) else gap_s(run, 50.0)
