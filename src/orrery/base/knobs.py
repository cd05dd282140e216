"""Settings that techniques share, and the sentences that refuse a setting that makes no sense."""

from dataclasses import dataclass

from orrery.base.errors import ScenarioError


@dataclass(frozen=True, slots=True, kw_only=True)
class NoKnobs:
    """A technique with nothing to set."""


def check_range(owner: object, name: str, least: float, most: float) -> None:
    """Refuse a knob outside [least, most]."""
    got = getattr(owner, name)
    if not least <= got <= most:
        raise ScenarioError(f"{name} = {got:g} in {type(owner).__name__}; write {least:g} to {most:g}.")


def check_above(owner: object, name: str, bound: float) -> None:
    """Refuse a knob that is not above ``bound``."""
    got = getattr(owner, name)
    if not got > bound:
        raise ScenarioError(f"{name} = {got:g} in {type(owner).__name__}; write more than {bound:g}.")
