"""ReaLHF: four models of one size on 8 to 128 devices; searched plans against plans made by hand."""

from collections.abc import Iterator
from math import exp, log

from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.memory import Infeasible
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.planner.rlhf.dataflow import ROLES, RlhfJob
from orrery.planner.rlhf.plan import Plan
from orrery.planner.rlhf.search import space_of
from orrery.planner.rlhf.techniques import disjoint, searched, symmetric, zero3

GATHERED = (
    "every token waits for a gather of all layers over the network; the hybrid engine of DeepSpeed-Chat keeps some of "
    "them, which is not modelled"
)
DEALT = (
    "here the training of OpenRLHF runs on the device and its engines answer like the others'; its optimizer on the "
    "host, its small micro-batches and its eager layers are not charged"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The table of run times at 70B, and the means over the four sizes."""
    setup = paper.setups["four-70b"]
    largest, num_steps = times_s(setup), setup.number("num_steps")
    for claim, name, why in (("deepspeed-chat", "zero3", GATHERED), ("openrlhf", "disjoint", DEALT)):
        yield Prediction(
            claim=f"ratio-{claim}",
            predicted=largest[name] / largest["searched"],
            differs=why,
            because=f"{name} over the plan found",
        )
        yield Prediction(
            claim=f"run-{claim}", predicted=num_steps * largest[name], because=f"1600 iterations, {name}", differs=why
        )
    yield Prediction(
        claim="run", predicted=num_steps * largest["searched"], because="1600 iterations of the plan found"
    )
    times = [*(times_s(paper.setups[name]) for name in ("four-7b", "four-13b", "four-34b")), largest]
    ratios = [t[name] / t["searched"] for t in times for name in ("zero3", "disjoint") if name in t]
    gains = [t["symmetric"] / t["searched"] - 1.0 for t in times if "symmetric" in t]
    yield Prediction(
        claim="speedup",
        predicted=exp(sum(log(r) for r in ratios) / len(ratios)),
        differs=f"{GATHERED}; {DEALT}",
        because=f"four sizes and both baselines, {min(ratios):.1f} to {max(ratios):.1f}",
    )
    yield Prediction(
        claim="plan-improvement",
        predicted=sum(gains) / len(gains),
        because=f"four sizes, {min(gains):.0%} to {max(gains):.0%}; same kernels, only cuts and meshes differ",
        differs="the symmetric plan pays for tensor parallelism over the whole node in every call; "
        "how far the paper's own plan by hand was tuned is not written",
    )


def times_s(setup: Setup) -> dict[str, float]:
    """Seconds of an iteration of every kind of plan that fits."""
    space = space_of(job(setup))
    if isinstance(space, Infeasible):
        return {}
    found = {
        "searched": searched.rule(space, searched.SearchedKnobs()),
        "symmetric": symmetric.rule(space, symmetric.TECHNIQUE.knobs()),
        "zero3": zero3.rule(space, zero3.ShardedKnobs()),
        "disjoint": disjoint.rule(space, disjoint.DisjointKnobs()),
    }
    return {name: plan.time_s for name, plan in found.items() if isinstance(plan, Plan)}


def job(setup: Setup) -> RlhfJob:
    """Four models of the set-up's size on its devices."""
    device = get_device(setup.word("device"))
    return RlhfJob(
        models=dict.fromkeys(ROLES, get_model(setup.word("model"))),
        cluster=Cluster(
            device=device,
            num_devices=int(setup.number("num_devices")),
            devices_per_node=int(setup.number("num_devices_per_node")),
        ),
        framework=get_framework("megatron-lm", device),
        recipe=get_recipe("bf16"),
        engine=get_engine("vllm", "", device),
        batch=int(setup.number("num_global_batch")),
        prompt_tokens=int(setup.number("input_tokens")),
        output_tokens=int(setup.number("output_tokens")),
        num_mini_batches=int(setup.number("num_mini_batches")),
    )
