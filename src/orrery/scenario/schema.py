"""The door: what a user may ask, checked in one place, with every mistake answered at once."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from orrery.base.errors import ScenarioError, nearest
from orrery.scenario.fields import BY_NAME, Setting
from orrery.scenario.knobs import read_knobs
from orrery.scenario.objectives import read_objectives


def _no_bool(value: Any) -> Any:
    """``true`` is not a number here, whatever Python thinks."""
    if isinstance(value, bool):
        raise ValueError("a truth value is no number")
    return value


def _printable(value: str | None) -> str | None:
    """Names and paths are typed by people: no control characters."""
    if value is not None and not value.isprintable():
        raise ValueError("write it without control characters")
    return value


def _bounds(name: str) -> dict[str, Any]:
    setting = BY_NAME[name]
    low = {"gt": setting.least} if setting.excludes_least else {"ge": setting.least}
    return {"default": None, "le": setting.most, "allow_inf_nan": False} | low if setting.kind == "number" else {
        "default": None, "ge": int(setting.least), "le": int(setting.most)
    }  # fmt: skip


Count = Annotated[int | None, BeforeValidator(_no_bool)]
Number = Annotated[float | None, BeforeValidator(_no_bool)]
Switch = bool | None
Word = Annotated[str | None, Field(min_length=1, max_length=4096), AfterValidator(_printable)]


class Scenario(BaseModel):
    """A deployment and its traffic as a user writes them; blank means: take the documented default and say so."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    model: Word = None
    device: Word = None
    devices: Count = Field(**_bounds("devices"))
    tp: Count = Field(**_bounds("tp"))
    pp: Count = Field(**_bounds("pp"))
    dp: Count = Field(**_bounds("dp"))
    ep: Count = Field(**_bounds("ep"))
    cp: Count = Field(**_bounds("cp"))
    weights: Word = None
    activations: Word = None
    kv: Word = None
    engine: Word = None
    engine_version: Word = None
    input_tokens: Count = Field(**_bounds("input_tokens"))
    output_tokens: Count = Field(**_bounds("output_tokens"))
    input_tokens_std: Number = Field(**_bounds("input_tokens_std"))
    output_tokens_std: Number = Field(**_bounds("output_tokens_std"))
    batch: Count = Field(**_bounds("batch"))
    concurrency: Count = Field(**_bounds("concurrency"))
    rate: Number = Field(**_bounds("rate"))
    trace: Word = None
    slo: tuple[str, ...] = ()
    objective: Word = None
    max_devices: Count = Field(**_bounds("max_devices"))
    max_num_seqs: Count = Field(**_bounds("max_num_seqs"))
    max_num_batched_tokens: Count = Field(**_bounds("max_num_batched_tokens"))
    max_model_len: Count = Field(**_bounds("max_model_len"))
    gpu_memory_utilization: Number = Field(**_bounds("gpu_memory_utilization"))
    usd_per_hour: Number = Field(**_bounds("usd_per_hour"))
    electricity: Number = Field(**_bounds("electricity"))
    seed: Count = Field(**_bounds("seed"))
    num_requests: Count = Field(**_bounds("num_requests"))
    arrivals: Word = None
    lengths: Word = None
    turns: Number = Field(**_bounds("turns"))
    think_s: Number = Field(**_bounds("think_s"))
    calls: Number = Field(**_bounds("calls"))
    prefix_tokens: Count = Field(**_bounds("prefix_tokens"))
    prefix_groups: Count = Field(**_bounds("prefix_groups"))
    replicas: Count = Field(**_bounds("replicas"))
    policy: Word = None
    queue: Word = None
    router: Word = None
    prefix_caching: Switch = None
    preemption: Word = None
    host_cache_bytes: Number = Field(**_bounds("host_cache_bytes"))
    prefill_replicas: Count = Field(**_bounds("prefill_replicas"))
    prefill_tp: Count = Field(**_bounds("prefill_tp"))
    prefill_pp: Count = Field(**_bounds("prefill_pp"))
    prefill_device: Word = None
    same_node: Switch = None
    split: Word = None
    overlap: Word = None
    transfer: Word = None
    swap: Word = None
    draft_model: Word = None
    draft_tokens: Count = Field(**_bounds("draft_tokens"))
    draft_tree: Word = None
    acceptance: Number = Field(**_bounds("acceptance"))
    kv_kept_tokens: Number = Field(**_bounds("kv_kept_tokens"))
    kv_kept_bytes: Number = Field(**_bounds("kv_kept_bytes"))
    lend_cache: Switch = None
    fill_tokens: Count = Field(**_bounds("fill_tokens"))
    fill_until_s: Number = Field(**_bounds("fill_until_s"))
    attainment: Number = Field(**_bounds("attainment"))
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
    def _named_numbers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        read_knobs(value)
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
        if value not in (None, "cost", "throughput"):
            raise ValueError("write cost or throughput")
        return value

    @model_validator(mode="after")
    def _one_kind_of_traffic(self) -> "Scenario":
        given = [n for n in ("batch", "concurrency", "rate") if getattr(self, n) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other; keep one")
        kinds = [n for n in ("trace", "turns", "calls", "prefix_tokens") if getattr(self, n) is not None]
        if len(kinds) > 1 and kinds != ["turns", "prefix_tokens"]:
            raise ValueError(f"{' and '.join(kinds)} are different kinds of traffic; keep one")
        if self.trace is not None and given and given != ["rate"]:
            raise ValueError(f"trace already says how requests arrive; leave out {given[0]}")
        return self

    def written(self) -> dict[str, Any]:
        """The settings that were given, as plain values, in the order of the help page."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in self.model_dump(exclude_defaults=True).items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def merged(scenario: Scenario | None, settings: Mapping[str, Any]) -> Scenario:
    """A scenario with settings on top, which override its own."""
    return read_scenario({**(scenario.written() if scenario else {}), **settings})


def read_scenario(settings: Mapping[str, Any], where: str = "") -> Scenario:
    """The scenario these settings describe. ScenarioError lists everything wrong with them, a line each."""
    plain = {key.replace("-", "_"): value for key, value in settings.items() if value is not None}
    try:
        return Scenario.model_validate(plain)
    except ValidationError as error:
        prefix = f"{where}: " if where else ""
        lines = [prefix + _sentence(e["type"], e["loc"], e["msg"], e["input"]) for e in error.errors()]
        raise ScenarioError("\n".join(dict.fromkeys(lines))) from None


def _sentence(kind: str, loc: tuple[int | str, ...], message: str, got: Any) -> str:
    """What, what was got, and what to write."""
    name = str(loc[0]) if loc else ""
    detail = message.removeprefix("Value error, ")
    if kind == "extra_forbidden":
        near = nearest(name, BY_NAME, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(BY_NAME)}."
        return f"There is no setting {name!r}; {hint}"
    if not name or name not in BY_NAME:
        return f"{detail}."
    setting = BY_NAME[name]
    if kind == "value_error" and "truth value" not in detail:
        return f"{name}: got {_short(got)}; {detail}."
    return f"{name}: got {_short(got)}; write {setting.expects}, such as {_example(setting)}."


def _example(setting: Setting) -> str:
    return f"{setting.name} = {setting.example}"


def _short(got: Any) -> str:
    said = repr(got)
    return said if len(said) <= 60 else said[:57] + "…"
