"""Agents on mixed hardware: prompts on older devices and answers on newer ones, against the latest devices alone."""

from collections.abc import Iterator

from orrery.base.errors import OutOfRange
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.fleet.money import S_PER_MONTH
from orrery.fleet.stages import Placed
from orrery.planner.money import J_PER_KWH
from orrery.scenario.fleet.graph import GraphAnswer, place_graph
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
    """``orrery fleet --graph`` with devices of one's own: prompts and answers on those kinds of machine."""
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
    prices: dict[str, float] = dict(zip(ROLES, setup.numbers("prices_swept"), strict=True))
    here = dict.fromkeys((prompts, answers))
    found = place_graph(
        {
            "graph": {"link_bytes_per_s": setup.number("link_bytes_per_s"), "stage": [call]},
            "device": ",".join(names[role] for role in here),
            "tp": layout_of(setup.word("layout")).tp,
            "slo": [f"{metric}:{1e3 * setup.number(limit):g}" for metric, limit in limits],
            "device_buy_usd": ",".join(f"{names[role]}={prices[role]:g}" for role in here),
            "life_months": round(setup.number("life_s") / S_PER_MONTH),
            "upkeep_frac": setup.number("upkeep_frac"),
            "pue": setup.number("cooling_ratio"),
            "electricity": setup.number("electricity_usd_per_j") * J_PER_KWH,
        }
    )
    if not isinstance(found, GraphAnswer):
        raise OutOfRange(f"setup {setup.name}: {found.infeasible}")
    return found.placed
