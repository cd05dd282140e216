"""Splitwise: clusters of prompt machines and token machines against clusters of machines that do both.

A rate counts when every request's slowdown against itself, alone on a DGX-A100, stays within nine limits. The cache
moves layer by layer beside the prompt's own computing, and machines of one kind help the other where its queue is long
or its memory full. A power cap is a clock.
"""

from collections.abc import Iterator, Mapping

from orrery.base.errors import OutOfRange
from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.capacity import Capacity, find_capacity
from orrery.scenario.disaggregate import Disaggregated
from orrery.scenario.schema import read_scenario
from orrery.serving.simulation.simulate import simulate
from orrery_papers.shared.objectives import gap_s
from orrery_papers.shared.setup import all_equal
from orrery_papers.splitwise.clusters import (
    A100,
    A100_PER_H100_POWER,
    H100,
    Bench,
    apart,
    lone,
    median,
    must,
    times,
    together,
    traffic,
)
from orrery_papers.splitwise.sized import Sized, gain

CLOCKS = "1,0.7"
"""A cap of 70 % is tried as a clock of 70 %, in either pool and where machines do both."""

SPEED = (
    "steps of answers, which the authors' simulator looks up by their number in a table of context lengths, so that 64 "
    "take no longer than one; by the batch, as the same table and this simulation have them, a token machine carries a "
    "third as many within 1.25 lone gaps ([unstated] on_paper)"
)

PRICES = "the stated prices: 25 DGX-H100 and 26 DGX-A100 cost more than 70 DGX-A100, and 7 % less than 40 DGX-H100"


def predict(paper: Paper) -> Iterator[Prediction]:
    """The price of moving caches; clusters of equal power and cost; lone requests."""
    yield from _moves(paper)
    bench = Bench(paper)
    yield from _clusters(bench)
    for claim in paper.claims:
        if claim.metric == "energy_p50":
            yield _energy(claim)
        elif claim.id.startswith("lone-"):
            yield _lone(claim)
        elif claim.metric == "throughput_per_cost":
            yield _per_usd(claim, bench)
    yield from _steps(paper)


def _clusters(bench: Bench) -> Iterator[Prediction]:
    setups = bench.setups
    usd = {
        d: setups[f"iso-power-baseline-{n}"].number("machine_usd_per_s") for n, d in (("a100", A100), ("h100", H100))
    }
    sized = Sized(setups["conversation"], usd)
    power = {
        "aa": sized.for_watts(70, A100, A100, A100),
        "ha": sized.for_watts(70, A100, H100, A100),
        "hhcap": sized.for_watts(70, A100, H100, H100, CLOCKS),
    }
    gains = {name: gain(found) for name, found in power.items()}
    for name in ("aa", "ha"):
        found, words = gains[name]
        yield Prediction(claim=f"iso-power-{name}", predicted=found, because=words, differs=SPEED)
    best = max(gains, key=lambda x: gains[x][0])
    words = f"Splitwise-{best.upper()}: {gains[best][1]}"
    yield Prediction(claim="headline-2.35", predicted=gains[best][0], because=words, differs=SPEED)
    found, words = gain(sized.for_dollars(40, H100, A100, A100))
    for claim in ("iso-cost-aa", "headline-1.4"):
        yield Prediction(claim=claim, predicted=found, because=words, differs=SPEED)
    for claim in ("same-throughput-less-cost", "headline-cost"):
        less = f"as many machines as reach the other's rate, both at their price: 1 - 1 / {found:.3g}"
        yield Prediction(claim=claim, predicted=1.0 - 1.0 / found, because=less, differs=SPEED)
    found, words = gain(sized.for_dollars(40, H100, H100, H100, CLOCKS))
    yield Prediction(claim="conclusion-1.76", predicted=found, because=words, differs=SPEED)
    found, words = gain(sized.for_watts(40, H100, H100, H100, CLOCKS))
    yield Prediction(claim="same-throughput-less-power", predicted=1.0 - 1.0 / found, because=words, differs=SPEED)
    rate = bench.stated("cost-optimal-hh-coding")
    yield Prediction(claim="coding-70-rps", predicted=rate, because="27 prompt and 3 token machines", differs=SPEED)
    yield from _prices(setups)
    yield _mismatched(sized, Sized(setups["coding"], usd), power["ha"])


def _mismatched(chat: Sized, code: Sized, fits: Disaggregated) -> Prediction:
    """Rate that machines numbered for the coding trace lose on conversations."""
    own, other = fits.best("separate"), code.for_watts(70, A100, H100, A100).best("separate")
    if own is None or other is None:
        raise OutOfRange("splitwise: no pools hold the limits.")
    again = {**other.settings, **chat.served, "slo": chat.limits, "max_prefill_queue": chat.queue}
    found = find_capacity(read_scenario(again))
    rate = found.requests_per_s if isinstance(found, Capacity) else 0.0
    words = f"{rate:.3g} requests/s with {other.prefill} and {other.decode}, the best for coding, against "
    words += f"{own.requests_per_s:.3g} with {own.prefill} and {own.decode}"
    return Prediction(claim="mismatched-pools", predicted=1.0 - rate / own.requests_per_s, because=words, differs=LENT)


LENT = (
    "what machines are lent by: prompts that wait and room for answers, where the paper also counts what is under way; "
    "and steps of answers as above"
)


def _prices(setups: Mapping[str, Setup]) -> Iterator[Prediction]:
    usd = {A100: setups["iso-power-baseline-a100"], H100: setups["iso-power-baseline-h100"]}
    each = {device: s.number("machine_usd_per_s") for device, s in usd.items()}
    ha, aa = setups["iso-power-ha"], setups["iso-cost-aa"]
    cost = sum(ha.number(f"num_{s}_machines") * each[ha.word(f"{s}_device")] for s in ("prefill", "decode"))
    machines = aa.number("num_prefill_machines") + aa.number("num_decode_machines")
    less = 1.0 - cost / (70 * each[A100])
    yield Prediction(claim="iso-power-ha-cost", predicted=less, because="stated counts and prices", differs=PRICES)
    yield Prediction(claim="iso-cost-aa-machines", predicted=machines / 40, because=f"{machines:.0f} over 40")
    watts = machines / A100_PER_H100_POWER / 40
    yield Prediction(claim="iso-cost-aa-power", predicted=watts, because="1.75 DGX-A100 draw what a DGX-H100 does")


SIGNALS = (
    "the transport: MSCCL++ of 2023, whose time to start and signal a layer is not written, where each start here is a "
    "send's of NCCL and each piece a block's of NIXL"
)

GAPS = (
    "the answer around the transfer, whose steps are those of an engine of late 2023 in the paper: of its 52 ms, 64 % "
    "are the time that is computed here"
)


def _moves(paper: Paper) -> Iterator[Prediction]:
    """Hand-overs between two machines, and what they add to a lone request."""
    for name in ("a100", "h100"):
        setup = paper.setups[f"two-machines-{name}"]
        left = must(simulate(apart(setup), median(setup))).counters["moved_s"]
        yield Prediction(claim=f"kv-transfer-{name}", predicted=left, because="the last layer's cache", differs=SIGNALS)
    setup = paper.setups["two-machines-a100"]
    sent = median(setup)
    alone = times(must(simulate(together(setup, setup.word("decode_device")), sent)))
    runs = {x: must(simulate(apart(setup, is_layerwise=x), sent)) for x in (True, False)}
    left_s = {x: run.counters["moved_s"] for x, run in runs.items()}
    gap = float(alone["tbt"][0])
    words = f"{1e3 * left_s[False]:.3g} ms for the whole cache"
    share = left_s[True] / float(alone["ttft"][0])
    yield Prediction(claim="kv-transfer-share-of-prompt", predicted=share, because=words)
    for claim, layerwise in (("kv-transfer-e2e", True), ("kv-transfer-e2e-serial", False)):
        more = float(times(runs[layerwise])["e2e"][0] / alone["e2e"][0]) - 1.0
        yield Prediction(claim=claim, predicted=more, because=words, differs=SIGNALS if layerwise else GAPS)
    for claim, layerwise in (("second-token", True), ("second-token-serial", False)):
        more, because = left_s[layerwise] / gap, f"{words}, a gap is {1e3 * gap:.3g} ms"
        yield Prediction(claim=claim, predicted=more, because=because, differs=SIGNALS if layerwise else GAPS)


HOST = (
    "the machines' hosts, which launch every kernel of an answer in vLLM of 2023 and are not described: the time of a "
    "launch is that of later releases on usual servers, the same beside either device"
)


def _lone(claim: Claim) -> Prediction:
    found = lone(claim.setup)
    name = claim.metric.removesuffix("_p50")
    return Prediction(claim=claim.id, predicted=float(found[name][0]), because="median lengths", differs=HOST)


def _energy(claim: Claim) -> Prediction:
    """A lone request's energy: the devices, and the machine around them."""
    setup = claim.setup
    served = together(setup, setup.word("device"))
    run = must(simulate(served, median(setup)))
    joules = run.energy_j + served.host_power_w * run.duration_s
    words = f"a machine for {run.duration_s:.3g} s, its host at {served.host_power_w:.0f} W"
    return Prediction(claim=claim.id, predicted=joules, because=words, differs=HOST)


def _per_usd(claim: Claim, bench: Bench) -> Prediction:
    """Requests a second of a machine that is never idle, over its price an hour."""
    setup = claim.setup
    sent = traffic(setup, float("inf"), bench.count)
    run = must(simulate(together(setup, setup.word("device")), sent))
    rate = run.requests.count / run.duration_s
    usd_per_h = 3600.0 * setup.number("machine_usd_per_s")
    words = f"{rate:.3g} requests/s of a machine for ${usd_per_h:.3g} an hour"
    return Prediction(claim=claim.id, predicted=rate / usd_per_h, because=words, differs=PER_USD)


PER_USD = (
    "the unit: the stated rate over the stated price asks more operations of a DGX-A100 than its peak, so it is not "
    "requests a second over dollars an hour of one machine, and what else it is was not found"
)


def _steps(paper: Paper) -> Iterator[Prediction]:
    setup = paper.setups["characterization"]
    served = together(setup, setup.word("device"))
    one, many = (must(simulate(served, all_equal(1500, 100, float("inf"), n))) for n in (1, 64))
    seen = times(one)
    prompt_s = float(seen["ttft"][0]) - served.pools[0].deployment.engine.entry_s(1500)
    found = prompt_s / float(seen["tbt"][0])
    yield Prediction(
        claim="prompt-in-tokens", predicted=found, because=f"a prompt takes {prompt_s:.3g} s", differs=HOST
    )
    found = gap_s(many, 50.0) / gap_s(one, 50.0)
    yield Prediction(claim="tbt-batch-64", predicted=found, because="64 answers behind prompts of 1500", differs=HOST)
