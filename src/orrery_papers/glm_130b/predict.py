"""GLM-130B: the fewest cards that hold it in four bits, its bytes, and the time of a long answer."""

from collections.abc import Iterator

from orrery.base.errors import OutOfRange
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.memory import Infeasible
from orrery.execution.shard import shard
from orrery.serving.estimate import estimate
from orrery.serving.workload import Workload
from orrery_papers.shared.fitting import deployed, fewest

DIFFERS = (
    "the authors' framework launches every operator of 70 layers from Python and, in four bits, turns all weights into "
    "FP16 at every step; the engine here does neither"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Devices, parameters, bytes, seconds."""
    claims = {claim.id: claim for claim in paper.claims}
    for name in ("devices-3090", "devices-2080-ti"):
        count, held = fewest(claims[name].setup)
        yield Prediction(
            claim=name,
            predicted=count,
            because=f"{held.weights_bytes / 1e9:.1f} GB of weights on each of {count}, room for "
            f"{held.kv_capacity_tokens:.0f} tokens; half as many do not hold it",
        )
    counted = get_model(claims["parameters"].setup.word("model")).num_parameters
    yield Prediction(claim="parameters", predicted=counted, because="counted from the configuration")
    timed = claims["weights-int4"].setup
    count = int(timed.number("num_devices"))
    held = count * shard(deployed(timed, count)).weight_bytes
    yield Prediction(
        claim="weights-int4", predicted=held, because="linear layers in four bits with scales, embeddings in sixteen"
    )
    for name, differs in TIMED.items():
        yield Prediction(claim=name, predicted=answer_s(claims[name].setup), because=STEPS, differs=differs)


COMPILED = (
    "an engine of 2022 launches a step kernel by kernel and sums over devices with the library's plain all-reduce"
)

TIMED = {
    "time-a100-compiled": COMPILED,
    "encode-a100-compiled": COMPILED,
    "time-a100": DIFFERS,
    "time-3090": DIFFERS,
}

STEPS = "one token a step: weights over the memory, two sums over the devices a layer"


def answer_s(setup: Setup) -> float:
    """One answer of one user, first token to last."""
    work = Workload(
        mode="static",
        input_tokens=setup.number("input_tokens"),
        output_tokens=setup.number("output_tokens"),
        batch_size=1,
    )
    found = estimate(deployed(setup, int(setup.number("num_devices"))), work)
    if isinstance(found, Infeasible):
        raise OutOfRange(str(found))
    return found.ttft_s + (setup.number("output_tokens") - 1.0) * found.tpot_s
