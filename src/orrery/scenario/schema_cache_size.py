"""The part of a scenario that sizes a cache for agents."""

from orrery.scenario.fields import BY_NAME
from orrery.scenario.kinds import Count, Number, Settings, Word


class CacheSizeScenario(Settings, table=BY_NAME):
    """Recorded sessions, their rate, and the tiers of a cache; blank means: the default, or no such tier."""

    sessions: Word = None
    sessions_per_hour: Number = None
    cache_hit: Number = None
    nvme_cache_bytes: Number = None
    remote_cache_bytes: Number = None
    remote_bytes_per_s: Number = None
    block_tokens: Count = None
