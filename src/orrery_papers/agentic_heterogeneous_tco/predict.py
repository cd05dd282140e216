"""Agents on mixed hardware: prompts on older devices and answers on newer ones, against the latest devices alone."""

from collections.abc import Iterator

from orrery.base.errors import OutOfRange
from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.fleet.ownership import Owned, Terms
from orrery.fleet.stages import Placed
from orrery.planner.money import S_PER_HOUR
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fleet.graph import place_graph
from orrery_papers.shared.setup import layout_of

ROLES = ("old_device", "new_device", "latest_device")

DIFFERS = "devices and prices are assumed; how fast each runs the model's prompts and answers is not"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Cost of the latest devices over that of the pair."""
    for claim in paper.claims:
        if not claim.missing:
            ours = best(claim.setup, "old_device", "new_device")
            other = best(claim.setup, "latest_device", "latest_device")
            yield Prediction(
                claim=claim.id,
                predicted=other.usd / ours.usd,
                differs=DIFFERS,
                because=f"{' + '.join(ours.machines)}: {ours.usd * 1e6:.0f} $ a million in {ours.latency_s:.1f} s; "
                f"{' + '.join(other.machines)}: {other.usd * 1e6:.0f} $ in {other.latency_s:.1f} s",
            )


def best(setup: Setup, prompts: str, answers: str) -> Placed:
    """Prompts and answers on those kinds of machine, asked of the same graph as a user's."""
    names = {role: setup.word(role) for role in ROLES}
    call = {
        "name": "agent",
        "model": setup.word("model"),
        "input_tokens": setup.number("input_tokens"),
        "output_tokens": setup.number("output_tokens"),
        "prompt_on": [names[prompts]],
        "answer_on": [names[answers]],
    }
    limits = (("e2el", "latency_limit_s"), ("tpot", "slo_tpot_s"))
    found = place_graph(
        {
            "graph": {"link_bytes_per_s": setup.number("link_bytes_per_s"), "stage": [call]},
            "device": ",".join(dict.fromkeys((names[prompts], names[answers]))),
            "tp": layout_of(setup.word("layout")).tp,
            "slo": [f"{metric}:{1e3 * setup.number(limit):g}" for metric, limit in limits],
        },
        rents_usd_per_hour={names[role]: S_PER_HOUR * owned(setup, role) for role in ROLES},
    )
    if isinstance(found, InfeasibleAnswer):
        raise OutOfRange(f"setup {setup.name}: {found.infeasible}")
    return found.placed


def owned(setup: Setup, role: str) -> float:
    """Dollars a second of one machine, or of a device where one holds the model."""
    terms = Terms(
        life_s=setup.number("life_s"),
        upkeep_frac=setup.number("upkeep_frac"),
        cooling_ratio=setup.number("cooling_ratio"),
        electricity_usd_per_j=setup.number("electricity_usd_per_j"),
    )
    count, device = layout_of(setup.word("layout")).num_devices, get_device(setup.word(role))
    price = count * setup.numbers("prices_swept")[ROLES.index(role)]
    return Owned(name=device.name, price_usd=price, power_w=count * device.power_limit_w).usd_per_s(terms)
