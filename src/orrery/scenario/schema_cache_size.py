"""The part of a scenario that sizes a cache for agents."""

from pydantic import BaseModel, Field

from orrery.scenario.kinds import Count, Number, Word, bounds


class CacheSizeScenario(BaseModel):
    """Recorded sessions, their rate, and the tiers of a cache; blank means: the default, or no such tier."""

    sessions: Word = None
    sessions_per_hour: Number = Field(**bounds("sessions_per_hour"))
    cache_hit: Number = Field(**bounds("cache_hit"))
    nvme_cache_bytes: Number = Field(**bounds("nvme_cache_bytes"))
    remote_cache_bytes: Number = Field(**bounds("remote_cache_bytes"))
    remote_bytes_per_s: Number = Field(**bounds("remote_bytes_per_s"))
    block_tokens: Count = Field(**bounds("block_tokens"))
