"""The serving part of a scenario: a deployment and its traffic."""

from typing import Any

from pydantic import BaseModel, Field, field_validator, model_validator

from orrery.scenario.kinds import Count, Number, Switch, Word, bounds
from orrery.scenario.knobs import check_knobs_written
from orrery.scenario.objectives import read_objectives


class ServingScenario(BaseModel):
    """What a deployment and its traffic are; blank means: take the documented default and say so."""

    model: Word = None
    assume: Word = None
    device: Word = None
    devices: Count = Field(**bounds("devices"))
    tp: Count = Field(**bounds("tp"))
    pp: Count = Field(**bounds("pp"))
    dp: Count = Field(**bounds("dp"))
    ep: Count = Field(**bounds("ep"))
    cp: Count = Field(**bounds("cp"))
    weights: Word = None
    activations: Word = None
    kv: Word = None
    engine: Word = None
    engine_version: Word = None
    moe_backend: Word = None
    attention_backend: Word = None
    gemm_backend: Word = None
    expert_loads: Word = None
    expert_placement: Word = None
    expert_offload: Word = None
    host_kv_bytes: Number = Field(**bounds("host_kv_bytes"))
    expert_cached: Number = Field(**bounds("expert_cached"))
    expert_cache: Word = None
    expert_schedule: Word = None
    expert_prefetch: Number = Field(**bounds("expert_prefetch"))
    expert_repeat: Number = Field(**bounds("expert_repeat"))
    host_flops_per_s: Number = Field(**bounds("host_flops_per_s"))
    all2all_backend: Word = None
    num_redundant_experts: Count = Field(**bounds("num_redundant_experts"))
    input_tokens: Count = Field(**bounds("input_tokens"))
    output_tokens: Count = Field(**bounds("output_tokens"))
    input_tokens_std: Number = Field(**bounds("input_tokens_std"))
    output_tokens_std: Number = Field(**bounds("output_tokens_std"))
    image_count: Count = Field(**bounds("image_count"))
    image_resolution: Word = None
    batch: Count = Field(**bounds("batch"))
    concurrency: Count = Field(**bounds("concurrency"))
    users: Count = Field(**bounds("users"))
    rate: Number = Field(**bounds("rate"))
    trace: Word = None
    workload: Word = None
    slo: tuple[str, ...] = ()
    objective: Word = None
    cut: Word = None
    clock_frac: Word = None
    sustained_s: Number = Field(**bounds("sustained_s"))
    battery_wh: Number = Field(**bounds("battery_wh"))
    sustained_w: Number = Field(**bounds("sustained_w"))
    thermal_s: Number = Field(**bounds("thermal_s"))
    max_devices: Count = Field(**bounds("max_devices"))
    max_num_seqs: Count = Field(**bounds("max_num_seqs"))
    max_num_batched_tokens: Count = Field(**bounds("max_num_batched_tokens"))
    scheduler_recv_interval: Count = Field(**bounds("scheduler_recv_interval"))
    max_model_len: Count = Field(**bounds("max_model_len"))
    gpu_memory_utilization: Number = Field(**bounds("gpu_memory_utilization"))
    usd_per_hour: Number = Field(**bounds("usd_per_hour"))
    electricity: Number = Field(**bounds("electricity"))
    seed: Count = Field(**bounds("seed"))
    num_requests: Count = Field(**bounds("num_requests"))
    arrivals: Word = None
    lengths: Word = None
    turns: Number = Field(**bounds("turns"))
    think_s: Number = Field(**bounds("think_s"))
    calls: Number = Field(**bounds("calls"))
    prefix_tokens: Count = Field(**bounds("prefix_tokens"))
    prefix_groups: Count = Field(**bounds("prefix_groups"))
    lora_adapters: Count = Field(**bounds("lora_adapters"))
    lora_rank: Count = Field(**bounds("lora_rank"))
    lora_popularity: Word = None
    max_loras: Count = Field(**bounds("max_loras"))
    replicas: Count = Field(**bounds("replicas"))
    policy: Word = None
    queue: Word = None
    router: Word = None
    prefix_caching: Switch = None
    preemption: Word = None
    host_cache_bytes: Number = Field(**bounds("host_cache_bytes"))
    prefill_replicas: Count = Field(**bounds("prefill_replicas"))
    prefill_tp: Count = Field(**bounds("prefill_tp"))
    prefill_pp: Count = Field(**bounds("prefill_pp"))
    prefill_dp: Count = Field(**bounds("prefill_dp"))
    prefill_ep: Count = Field(**bounds("prefill_ep"))
    prefill_device: Word = None
    same_node: Switch = None
    split: Word = None
    overlap: Word = None
    transfer: Word = None
    swap: Word = None
    draft: Word = None
    draft_model: Word = None
    draft_tokens: Count = Field(**bounds("draft_tokens"))
    draft_tree: Word = None
    draft_batching: Word = None
    draft_pool: Count = Field(**bounds("draft_pool"))
    acceptance: Number = Field(**bounds("acceptance"))
    acceptance_by_position: Word = None
    kv_kept_tokens: Number = Field(**bounds("kv_kept_tokens"))
    kv_kept_bytes: Number = Field(**bounds("kv_kept_bytes"))
    kv_kept_layers: Word = None
    kv_selection: Word = None
    kv_budget_tokens: Count = Field(**bounds("kv_budget_tokens"))
    attention_map: Word = None
    lend_cache: Switch = None
    fill_tokens: Count = Field(**bounds("fill_tokens"))
    fill_until_s: Number = Field(**bounds("fill_until_s"))
    attainment: Number = Field(**bounds("attainment"))
    knob: tuple[str, ...] = ()

    @field_validator("slo", "knob", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("slo")
    @classmethod
    def _readable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(o.written for o in read_objectives(value))

    @field_validator("knob")
    @classmethod
    def _named_values(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        check_knobs_written(value)
        return value

    @field_validator("preemption")
    @classmethod
    def _known_preemption(cls, value: str | None) -> str | None:
        if value not in (None, "recompute", "swap"):
            raise ValueError("write recompute or swap")
        return value

    @field_validator("engine_version")
    @classmethod
    def _has_numbers(cls, value: str | None) -> str | None:
        if value is not None and not value[:1].isdigit():
            raise ValueError("write its numbers, such as 0.11.0")
        return value

    @field_validator("objective")
    @classmethod
    def _known_objective(cls, value: str | None) -> str | None:
        if value not in (None, "cost", "throughput", "latency", "energy"):
            raise ValueError("write cost, throughput, latency or energy")
        return value

    @model_validator(mode="after")
    def _one_kind_of_traffic(self) -> "ServingScenario":
        given = [n for n in ("batch", "concurrency", "users", "rate") if getattr(self, n) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other; keep one")
        if self.users is not None and (others := [n for n in ("turns", "calls", "prefix_tokens") if getattr(self, n)]):
            raise ValueError(f"users send independent requests; leave out {others[0]}")
        kinds = [n for n in ("trace", "turns", "calls", "prefix_tokens") if getattr(self, n) is not None]
        if len(kinds) > 1 and kinds != ["turns", "prefix_tokens"]:
            raise ValueError(f"{' and '.join(kinds)} are different kinds of traffic; keep one")
        if self.trace is not None and given and given != ["rate"]:
            raise ValueError(f"trace already says how requests arrive; leave out {given[0]}")
        return self
