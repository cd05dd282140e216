"""Traffic made from a few numbers: lengths, conversations, agents, shared prefixes, or a fit to a trace."""

from orrery.serving.synthesis.agents import Agents, agent_loops
from orrery.serving.synthesis.fitted import Fitted, fit
from orrery.serving.synthesis.lengths import Length
from orrery.serving.synthesis.plain import independent, resampled
from orrery.serving.synthesis.prefixes import Prefixes, repeated, shared_prefixes
from orrery.serving.synthesis.sessions import Conversations, conversations

__all__ = [
    "Agents",
    "Conversations",
    "Fitted",
    "Length",
    "Prefixes",
    "agent_loops",
    "conversations",
    "fit",
    "independent",
    "repeated",
    "resampled",
    "shared_prefixes",
]
