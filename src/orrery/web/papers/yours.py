"""The reader's saved deployment beside a paper's claims: asked behind the page, technique by technique."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from orrery.base.errors import OrreryError
from orrery.evidence.feed.entry import Classification, NumericClaim
from orrery.evidence.understanding.claim_effect import (
    ClaimEffect,
    Result,
    answer_of,
    askable,
    effects,
    figure_of,
    is_computed,
    why_none,
    written,
)
from orrery.evidence.understanding.meaning import DeploymentEffect
from orrery.scenario.schema import read_scenario
from orrery.scenario.what_if import what_if
from orrery.web.address import Query
from orrery.web.named import UPLOADED
from orrery.web.papers.fetched_view import read_claim
from orrery.web.papers.meaning import deployment_of
from orrery.web.papers.messages import describe
from orrery.web.place import Place
from orrery.web.uploads.stored_files import listed

MAX_BECAUSE = 400
"""Letters of a reason beside a claim."""

COMPUTING = "it is being computed; reload in a moment."


def saved(place: Place) -> str:
    """The scenario that the reader uploaded last; empty where there is none."""
    return next((stored.name for stored in listed(place.uploads) if stored.kind == "scenario"), "")


def answer(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """In the worker: what ``orrery what-if NAME --json`` lists, without the search for where it turns."""
    found = what_if([inputs["technique"]], read_scenario(inputs["deployment"]), break_even=())
    return found.results[0].to_json()


class _NotKnown(Exception):
    """A technique is still being computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideClaim:
    """One claim in the deployment as text; without a number, ``because`` says why."""

    claimed: str
    number: str
    figure: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Text beside each claim, as far as it is known."""

    technique: str = ""
    because: str = ""  # how it was switched on, or why it cannot be
    command: str = ""  # that has the same numbers
    claims: tuple[BesideClaim, ...] = ()  # one for each; none where nothing is computed
    is_done: bool = True


@dataclass(frozen=True, slots=True)
class SavedDeployment:
    """A deployment whose questions are answered from memory; those that are not known yet are begun."""

    known: Callable[[dict[str, Any]], Result | None]  # what was answered before; else it is begun
    settings: Mapping[str, Any]

    def meanings(self, understood: Classification) -> tuple[DeploymentEffect, ...]:
        """None: a digest on a page has what its claims would be."""
        return ()

    def claim_effects(self, understood: Classification) -> tuple[ClaimEffect, ...]:
        """Effects that are known; where none are yet, the words that they are computed."""
        try:
            found = answer_of(askable(understood), self._result) if understood.claims else None
            return tuple(effects(understood.claims, found, why_none(understood)))
        except _NotKnown:
            return tuple(ClaimEffect(because=COMPUTING) for _ in understood.claims)

    def beside(self, understood: Classification) -> Beside:
        """Text for each claim, with the likeliest technique that the deployment can take."""
        try:
            found = answer_of(askable(understood), self._result)
        except _NotKnown:
            return Beside(is_done=False)
        if found is None:
            return Beside()
        claims = effects(understood.claims, found, "") if is_computed(found) else ()
        return Beside(
            technique=str(found["technique"]),
            because=describe(str(found["because"]), MAX_BECAUSE),
            command=f"orrery what-if {found['technique']}" if claims else "",
            claims=tuple(_beside(e, c) for e, c in zip(claims, understood.claims, strict=bool(claims))),
        )

    def _result(self, name: str) -> Result:
        try:
            found = self.known({"deployment": dict(self.settings), "technique": name})
        except OrreryError as error:
            return {"technique": name, "outcome": "does not apply", "because": str(error)}
        if found is None:
            raise _NotKnown
        return found


def _beside(effect: ClaimEffect, claim: NumericClaim) -> BesideClaim:
    because = "" if effect.is_computed else describe(effect.because, MAX_BECAUSE)
    read = read_claim(claim)
    return BesideClaim(
        claimed=f"claims {read.what} {read.amount}",
        number=written(effect, claim.unit),
        figure=figure_of(effect),
        because=because,
    )


def deployment_named(query: Query, place: Place) -> tuple[str, dict[str, Any] | None]:
    """Name and settings of the deployment that claims are held against: the address', else the saved one."""
    given = deployment_of(query, place)
    if given is not None:
        return query.get("scenario", "").removeprefix(UPLOADED) or "as in the form below", given
    name = saved(place)
    return name, deployment_of(Query({"scenario": f"{UPLOADED}{name}"}), place) if name else None


ABOUT = ("devices", "tp", "pp", "concurrency", "rate", "users", "batch", "global_batch", "max_devices")


def words_of(settings: Mapping[str, Any]) -> str:
    """The deployment in a line: its model, device and load."""
    given = (f"{name.replace('_', ' ')} {settings[name]}" for name in ABOUT if settings.get(name) is not None)
    return describe(", ".join((f"{settings.get('model', '?')} on {settings.get('device', '?')}", *given)), 200)
