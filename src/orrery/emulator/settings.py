"""Settings of an emulated server, beside the service that it stands for."""

from dataclasses import dataclass

from orrery.emulator.image_pipeline import ImagePipeline
from orrery.emulator.kv_settings import KVEventSettings
from orrery.emulator.lora import LoraModules
from orrery.emulator.refusal import RequestError
from orrery.emulator.transcriber import Transcriber
from orrery.fleet.service.tenants import Tenant
from orrery.serving.synthesis import Length


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the answers. Times are those of the simulated service; the wall clock sees them ``speed_ratio`` x
    sooner.
    """

    names: tuple[str, ...]  # of the model, as clients write it; the first one is answered
    context_tokens: int  # prompt and answer together
    block_tokens: int  # of the cache: prompts that begin with equal blocks share them
    answer: Length | None = None  # where a model would end by itself; None: only where the request says
    speed_ratio: float = 1.0
    api_key: str = ""  # empty: everybody may ask
    max_queued: int = 0  # requests that may wait; 0: any number
    failure_frac: float = 0.0  # of requests that fail on purpose
    seed: int = 0
    has_admin: bool = False  # whoever may ask may also lose replicas, scale, and make load
    has_legacy_metrics: bool = False  # names that vLLM gave up, for old dashboards
    embedding_size: int = 0  # numbers of a vector: the model's width
    guessed_tokens: int = 0  # that a step checks for each answer; 0: nothing is guessed
    guessed_levels: int = 0  # most of them that can hold at once
    hosts: frozenset[str] = frozenset()  # names under which it may be asked, beside this machine's own
    tenants: tuple[Tenant, ...] = ()  # whose budgets and priorities hold for requests of a ``user`` of their name
    origins: tuple[str, ...] = ()  # where requests may come from; none: the service stands in no regions
    lora: LoraModules | None = None  # adapters that requests may choose; None: the model takes none
    images: ImagePipeline | None = None  # that makes pictures beside the language model
    speech: Transcriber | None = None  # that hears recordings beside it
    wake_s: tuple[float, float] = (0.0, 0.0)  # from sleep of level 1 and 2
    kv_events: KVEventSettings | None = None  # where what the caches gain and lose is told; None: nowhere
    cache_config: tuple[tuple[str, str], ...] = ()  # labels of vLLM's metric of that name

    def known(self, name: str | None) -> str:
        """The model's name as a client wrote it, or the first; 404 where there is none of it."""
        if name is not None and name not in self.names and self.adapter_of(name) < 0:
            raise RequestError(404, f"The model `{name[:200]}` does not exist; /v1/models lists what does.", "model")
        return name or self.names[0]

    def adapter_of(self, name: str | None) -> int:
        """Number of the adapter that a model's name stands for; -1 where it is the model itself."""
        return -1 if name is None or self.lora is None else self.lora.numbers.get(name, -1)
