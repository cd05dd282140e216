"""Agents on mixed hardware: prompts on older devices and answers on newer ones, against the latest devices alone."""

from collections.abc import Iterator

from orrery.base.errors import OutOfRange
from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.fleet.ownership import Owned, Terms
from orrery.fleet.stages import Placed, Stage, Work, answer_work, cheapest, prompt_cache_bytes, prompt_work
from orrery_papers.shared.setup import deployment, layout_of

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
    """Prompts and answers on those kinds of machine."""
    stages = [
        Stage(name="prompt", work=works(setup, prompts, is_prompt=True), passed_bytes=passed_bytes(setup)),
        Stage(name="answer", work=works(setup, answers, is_prompt=False), passed_bytes=0.0),
    ]
    rents = {name: owned(setup, role) for role in ROLES for name in (setup.word(role),)}
    limit_s = setup.number("latency_limit_s")
    placed = cheapest(stages, rents, setup.number("link_bytes_per_s"), limit_s, tuple(rents))
    if placed is None:
        raise OutOfRange(f"setup {setup.name}: nothing answers within {limit_s:g} s; allow more.")
    return placed


def works(setup: Setup, role: str, *, is_prompt: bool) -> dict[str, Work]:
    """What a stage takes on that kind; nothing where it cannot run it."""
    name, sizes = setup.word(role), (setup.number("input_tokens"), setup.number("output_tokens"))
    whole = deployment(setup, device=name)
    work = prompt_work(whole, sizes[0]) if is_prompt else answer_work(whole, *sizes, setup.number("slo_tpot_s"))
    return {name: work} if work else {}


def passed_bytes(setup: Setup) -> float:
    """The prompt's cache."""
    return prompt_cache_bytes(deployment(setup, device=setup.word("latest_device")), setup.number("input_tokens"))


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
