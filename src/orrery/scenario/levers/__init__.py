"""Levers: every technique that a command takes, with the settings that switch it; one registry for all commands."""

from orrery.scenario.levers.lever import Lever
from orrery.scenario.levers.registry import get_lever, lever_of, levers, why_no_lever

__all__ = ["Lever", "get_lever", "lever_of", "levers", "why_no_lever"]
