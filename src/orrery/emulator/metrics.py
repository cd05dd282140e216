"""``GET /metrics``: what an engine publishes, under vLLM's names, and how well the emulator keeps pace.

Every replica is an engine of its own. Series exist from the start, at 0, so that rates and alerts work before the first
request.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from orrery.emulator.fleet_metrics import fleet_metrics
from orrery.emulator.lora import LoraModules
from orrery.emulator.meters import HISTOGRAMS, REASONS, Guesses
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.settings import Settings
from orrery.fleet.service.live_fleet import LiveFleet
from orrery.serving.live.result import Snapshot

LABELS = ("model_name", "engine")
GAUGES = {
    "num_requests_running": ("running", "Requests in the batch."),
    "num_requests_waiting": ("waiting", "Requests in the queue."),
    "kv_cache_usage_perc": ("cache_frac", "Share of the key/value cache in use, from 0 to 1."),
}
COUNTERS = {
    "num_preemptions": ("preemptions", "Requests that gave up their place in the batch."),
    "prompt_tokens": ("prompt_tokens", "Prompt tokens, those from a cache included."),
    "generation_tokens": ("answer_tokens", "Tokens of answers."),
    "prefix_cache_queries": ("queried_tokens", "Prompt tokens that were looked up in the prefix cache."),
    "prefix_cache_hits": ("hit_tokens", "Prompt tokens that were found there."),
}
"""vLLM's name -> the column of a snapshot, and what it is."""

LEGACY_GAUGES = {"gpu_cache_usage_perc": GAUGES["kv_cache_usage_perc"]}
LEGACY_COUNTERS = {
    "gpu_prefix_cache_queries": COUNTERS["prefix_cache_queries"],
    "gpu_prefix_cache_hits": COUNTERS["prefix_cache_hits"],
}
LEGACY_HISTOGRAMS = {"time_per_output_token_seconds": "inter_token_latency_seconds"}
"""Names that older dashboards ask for, and what they are called now."""

SLEEP_STATES = ("awake", "weights_offloaded", "discard_all")
"""Name of each level of sleep in vLLM's metric; 0 is none."""

REJECTIONS = ("queue_full", "closing")


class EngineMetrics(Collector):
    """One reading of the simulator's state and of what was counted, by engine.

    ``engines`` chooses some, under the names that they have there; engines of replicas that do not run have no series.
    """

    def __init__(
        self, pace: RealTimeDriver, settings: Settings, engines: Callable[[], Mapping[int, int]] | None = None
    ) -> None:
        self._pace, self._settings, self._model = pace, settings, settings.names[0]
        self._meters, self._chosen, self._names = pace.meters, engines, dict[int, int]()

    def collect(self) -> Iterator[Metric]:
        """All families."""
        now, live = self._pace.live.snapshot(), self._pace.live
        if self._chosen is not None:
            self._names = dict(self._chosen())
        else:
            shown = np.flatnonzero(now.is_up) if isinstance(live, LiveFleet) else np.arange(now.is_up.size)
            self._names = {k: k for k in shown.tolist()}
        replicas = list(self._names)
        yield from self._state(now)
        yield from self._ended(replicas)
        yield from self._prompts(replicas)
        yield from self._histograms(replicas)
        if self._meters.guesses is not None:
            yield from self._guessed(replicas, self._meters.guesses)
        if self._settings.has_admin:
            yield self._sleep()
        if self._settings.lora is not None:
            yield self._adapters(self._settings.lora)
        if self._chosen is not None:
            return
        yield from self._own()
        if isinstance(live, LiveFleet):
            yield from fleet_metrics(live, now)

    def _counter(self, name: str, says: str, rows: Iterable[tuple[int, tuple[str, ...], float]], *more: str) -> Metric:
        """One of vLLM's counters, from rows of (replica, further labels, value)."""
        family = CounterMetricFamily(f"vllm:{name}", says, labels=(*LABELS, *more))
        for replica, labels, value in rows:
            family.add_metric([self._model, str(self._names.get(replica, replica)), *labels], float(value))
        return family

    def _gauge(self, name: str, says: str, rows: Iterable[tuple[int, tuple[str, ...], float]], *more: str) -> Metric:
        family = GaugeMetricFamily(f"vllm:{name}", says, labels=(*LABELS, *more))
        for replica, labels, value in rows:
            family.add_metric([self._model, str(self._names.get(replica, replica)), *labels], float(value))
        return family

    def _state(self, now: Snapshot) -> Iterator[Metric]:
        is_old = self._settings.has_legacy_metrics
        for names, family in (
            (GAUGES | (LEGACY_GAUGES if is_old else {}), self._gauge),
            (COUNTERS | (LEGACY_COUNTERS if is_old else {}), self._counter),
        ):
            for name, (column, says) in names.items():
                values = getattr(now, column)
                yield family(name, says, [(k, (), float(values[k])) for k in self._names])
        reasons = [
            (k, (why,), float(now.waiting[k]) if why == "capacity" else 0.0)
            for k in self._names
            for why in ("capacity", "deferred")
        ]
        yield self._gauge(
            "num_requests_waiting_by_reason",
            "Requests in the queue, by what they wait for: room in the batch and the cache, or something else.",
            reasons,
            "reason",
        )
        names = tuple(name for name, _ in self._settings.cache_config)
        labels = tuple(value for _, value in self._settings.cache_config)
        yield self._gauge(
            "cache_config_info", "How the cache is cut up.", [(k, labels, 1.0) for k in self._names], *names
        )

    def _ended(self, replicas: Sequence[int]) -> Iterator[Metric]:
        meters = self._meters
        ends = [(k, (why,), meters.ended[k, why]) for k in replicas for why in REASONS]
        yield self._counter("request_success", "Answers, by how they ended.", ends, "finished_reason")
        refused = [(0, (why,), meters.refused[why]) for why in REJECTIONS]
        yield self._counter("admission_rejections", "Requests that were turned away.", refused, "reason")

    def _prompts(self, replicas: Sequence[int]) -> Iterator[Metric]:
        computed, cached = self._meters.computed_tokens, self._meters.cached_tokens
        yield self._counter(
            "prompt_tokens_cached",
            "Prompt tokens that were found in the prefix cache.",
            [(k, (), cached[k]) for k in replicas],
        )
        sources = {"local_compute": computed, "local_cache_hit": cached}
        yield self._counter(
            "prompt_tokens_by_source",
            "Prompt tokens, by where their keys and values came from.",
            [(k, (at,), of[k]) for k in replicas for at, of in sources.items()],
            "source",
        )

    def _histograms(self, replicas: Sequence[int]) -> Iterator[Metric]:
        old = LEGACY_HISTOGRAMS if self._settings.has_legacy_metrics else {}
        for name, now_called in {**{name: name for name in HISTOGRAMS}, **old}.items():
            family = HistogramMetricFamily(f"vllm:{name}", HISTOGRAMS[now_called][0], labels=LABELS)
            for replica in replicas:
                found = self._meters.of(replica)[now_called]
                family.add_metric([self._model, str(self._names.get(replica, replica))], found.cumulated, found.total)
            yield family

    def _guessed(self, replicas: Sequence[int], of: dict[int, Guesses]) -> Iterator[Metric]:
        each, found = self._settings.guessed_tokens, [(k, of.get(k) or Guesses()) for k in replicas]
        yield self._counter(
            "spec_decode_num_drafts",
            "Number of decode steps that verified draft tokens.",
            [(k, (), g.num_steps) for k, g in found],
        )
        yield self._counter(
            "spec_decode_num_draft_tokens", "Number of draft tokens.", [(k, (), each * g.num_steps) for k, g in found]
        )
        yield self._counter(
            "spec_decode_num_accepted_tokens",
            "Number of accepted draft tokens.",
            [(k, (), g.by_place.total()) for k, g in found],
        )
        places = [(k, (str(p),), g.by_place[p]) for k, g in found for p in range(self._settings.guessed_levels)]
        yield self._counter(
            "spec_decode_num_accepted_tokens_per_pos", "The same by their place in the row.", places, "position"
        )

    def _sleep(self) -> Metric:
        level = self._pace.sleep_level
        rows = [(k, (word,), float(at == level)) for k in self._names for at, word in enumerate(SLEEP_STATES)]
        return self._gauge("engine_sleep_state", "1 in the state in which the engine is.", rows, "sleep_state")

    def _adapters(self, modules: LoraModules) -> Metric:
        """The adapters in batches and in queues, as routers by adapter read them; the value is the time."""
        names = {number: name for name, number in modules.numbers.items()}
        found: list[tuple[int, int, int]] = self._pace.live.adapters().tolist()
        lists = [
            {names[a] for engine, a, running in found if engine in self._names and a in names and running == kind}
            for kind in (0, 1)
        ]
        family = GaugeMetricFamily(
            "vllm:lora_requests_info",
            "Adapters that are in a batch, and that wait for one.",
            labels=("max_lora", "waiting_lora_adapters", "running_lora_adapters"),
        )
        family.add_metric([str(modules.num_slots), *(",".join(sorted(x)) for x in lists)], time.time())
        return family

    def _own(self) -> Iterator[Metric]:
        """Metrics that no engine publishes: the accuracy of the clock."""
        lag = self._meters.lag.histogram
        own = HistogramMetricFamily(
            "orrery:predicted_vs_emulated_lag_seconds",
            "From the moment a token was due to the moment it left, on the wall.",
        )
        own.add_metric([], lag.cumulated, lag.total)
        yield own
        speed = "Seconds of the emulated service in one of the wall's."
        yield GaugeMetricFamily("orrery:emulator_speed_ratio", speed, value=self._settings.speed_ratio)
        loop = self._meters.lag.loop
        family = HistogramMetricFamily(
            "orrery:emulator_event_loop_lag_seconds", "How late the server's own timer is served, on the wall."
        )
        family.add_metric([], loop.cumulated, loop.total)
        yield family


class Metrics:
    """The page, in the form that the reader takes."""

    def __init__(
        self, pace: RealTimeDriver, settings: Settings, engines: Callable[[], Mapping[int, int]] | None = None
    ) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(EngineMetrics(pace, settings, engines))

    def page(self, accept: str) -> tuple[bytes, bytes]:
        """(text, content type)."""
        encode, kind = choose_encoder(accept)
        return encode(self._registry), kind.encode()
