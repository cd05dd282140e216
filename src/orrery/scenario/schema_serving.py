"""The serving part of a scenario: a deployment and its traffic."""

from typing import Any

from pydantic import field_validator, model_validator

from orrery.scenario.fields import BY_NAME
from orrery.scenario.kinds import Count, Number, Settings, Switch, Word
from orrery.scenario.knobs import check_knobs_written
from orrery.scenario.objectives import read_objectives


class ServingScenario(Settings, table=BY_NAME):
    """Settings of a deployment and its traffic; a blank takes the documented default, with a note."""

    model: Word = None
    assume: Word = None
    device: Word = None
    devices: Count = None
    tp: Count = None
    pp: Count = None
    dp: Count = None
    ep: Count = None
    cp: Count = None
    weights: Word = None
    activations: Word = None
    kv: Word = None
    online_rotation: Word = None
    wide_frac: Number = None
    wide_format: Word = None
    sparsity: Word = None
    engine: Word = None
    engine_version: Word = None
    moe_backend: Word = None
    attention_backend: Word = None
    gemm_backend: Word = None
    enforce_eager: Switch = None
    expert_loads: Word = None
    expert_placement: Word = None
    composition: Word = None
    switch_bytes_per_s: Number = None
    expert_offload: Word = None
    host_kv_bytes: Number = None
    expert_cached: Number = None
    expert_cache: Word = None
    expert_schedule: Word = None
    expert_prefetch: Number = None
    expert_repeat: Number = None
    host_flops_per_s: Number = None
    all2all_backend: Word = None
    num_redundant_experts: Count = None
    input_tokens: Count = None
    output_tokens: Count = None
    input_tokens_std: Number = None
    output_tokens_std: Number = None
    image_count: Count = None
    image_resolution: Word = None
    batch: Count = None
    concurrency: Count = None
    users: Count = None
    rate: Number = None
    trace: Word = None
    workload: Word = None
    slo: tuple[str, ...] = ()
    objective: Word = None
    cut: Word = None
    clock_frac: Word = None
    weight_window: Count = None
    drive_bytes_per_s: Number = None
    link_bytes_per_s: Number = None
    link_s: Number = None
    exchange: Word = None
    sustained_s: Number = None
    battery_wh: Number = None
    sustained_w: Number = None
    thermal_s: Number = None
    max_devices: Count = None
    max_num_seqs: Count = None
    max_num_batched_tokens: Count = None
    scheduler_recv_interval: Count = None
    max_model_len: Count = None
    gpu_memory_utilization: Number = None
    usd_per_hour: Number = None
    device_usd_per_hour: Word = None
    electricity: Number = None
    seed: Count = None
    num_requests: Count = None
    arrivals: Word = None
    lengths: Word = None
    turns: Number = None
    think_s: Number = None
    calls: Number = None
    prefix_tokens: Count = None
    prefix_groups: Count = None
    replicas: Count = None
    policy: Word = None
    queue: Word = None
    router: Word = None
    prefix_caching: Switch = None
    preemption: Word = None
    host_cache_bytes: Number = None
    lora_adapters: Count = None
    lora_rank: Count = None
    lora_popularity: Word = None
    max_loras: Count = None
    pipeline_sends: Word = None
    weight_offload: Word = None
    weight_offload_frac: Number = None
    disaggregation_mode: Word = None
    prefill_replicas: Count = None
    prefill_tp: Count = None
    prefill_pp: Count = None
    prefill_dp: Count = None
    prefill_ep: Count = None
    prefill_device: Word = None
    prefill_clock_frac: Number = None
    decode_device: Word = None
    same_node: Switch = None
    layerwise_transfer: Switch = None
    max_prefill_queue: Count = None
    split: Word = None
    overlap: Word = None
    transfer: Word = None
    swap: Word = None
    cipher_bytes_per_s: Number = None
    draft: Word = None
    draft_model: Word = None
    draft_tokens: Count = None
    draft_tree: Word = None
    draft_batching: Word = None
    draft_pool: Count = None
    acceptance: Number = None
    acceptance_by_position: Word = None
    context_lengths: Word = None
    kv_kept_tokens: Number = None
    kv_kept_bytes: Number = None
    kv_kept_layers: Word = None
    kv_selection: Word = None
    kv_budget_tokens: Count = None
    attention_map: Word = None
    lend_cache: Switch = None
    fill_tokens: Count = None
    fill_until_s: Number = None
    fill_backward_layers: Count = None
    fill_sequence_tokens: Count = None
    attainment: Number = None
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
