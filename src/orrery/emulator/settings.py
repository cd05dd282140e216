"""What an emulated server is told before it starts, beyond the service that it stands for."""

from dataclasses import dataclass

from orrery.serving.synthesis import Length


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the server answers. Times are those of the simulated service; the wall sees them ``speed_ratio`` x sooner."""

    names: tuple[str, ...]  # of the model, as clients write it; the first one is answered
    context_tokens: int  # prompt and answer together
    block_tokens: int  # of the cache: prompts that begin with equal blocks share them
    answer: Length | None = None  # where a model would end by itself; None: only where the request says
    speed_ratio: float = 1.0
    api_key: str = ""  # empty: everybody may ask
    max_queued: int = 0  # requests that may wait; 0: any number
    failure_frac: float = 0.0  # of requests that fail on purpose
    seed: int = 0
