"""Why a number is what it is: a tree of rules and parts whose leaves are facts with sources."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from orrery.base.cost import Cost
from orrery.base.errors import ScenarioError, nearest
from orrery.base.sources import Fact
from orrery.base.units import text
from orrery.execution.choice import Choice, backend_words, chosen
from orrery.execution.engine import Kind
from orrery.scenario.ask import Answer
from orrery.scenario.reason import Reason
from orrery.scenario.why_answer import reasons_of


def why(answer: Answer, path: str) -> Reason:
    """Unfold the number at ``path`` (``tpot_s``, ``memory.weights_bytes``, …); how its name begins is enough."""
    known = _reasons(answer)
    name = path.strip().casefold().replace("-", "_")
    exact = known.get(name)
    if exact is None:
        starts = [k for k in known if k.startswith(name)]
        exact = known[starts[0]] if starts and name else None
    if exact is None:
        near = nearest(path, known, 2)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known: {', '.join(known)}."
        raise ScenarioError(f"There is no number {path!r} to explain; {hint}")
    return exact()


def paths(answer: Answer) -> tuple[str, ...]:
    """Every number that can be unfolded."""
    return tuple(_reasons(answer))


def _reasons(a: Answer) -> Mapping[str, Callable[[], Reason]]:
    return {
        "ttft_s": lambda: _ttft(a),
        "tpot_s": lambda: _tpot(a),
        "latency_s": lambda: _latency(a),
        "output_tokens_per_s": lambda: _rate(a),
        "total_tokens_per_s": lambda: _total_rate(a),
        "requests_per_s": lambda: _requests(a),
        "power_w": lambda: _power(a),
        "host_power_w": lambda: _host_power(a),
        "energy_j_per_token": lambda: _energy(a),
        "energy_j_per_token_with_host": lambda: _energy_with_host(a),
        "usd_per_million_tokens": lambda: _usd(a, "output_tokens_per_s", a.usd_per_million_tokens),
        "usd_per_million_total_tokens": lambda: _usd(a, "total_tokens_per_s", a.usd_per_million_total_tokens),
        **{
            f"{kind}_backend": lambda kind=kind, found=found: _backend(a, kind, found)
            for kind, found in chosen(a.question.deployment).items()
        },
        "engine_version": lambda: _version(a),
        "bound_by": lambda: _bound_by(a),
        "memory.weights_bytes": lambda: _weights(a),
        "memory.kv_capacity_bytes": lambda: _cache(a),
        "memory.kv_capacity_tokens": lambda: _cache_tokens(a),
        "memory.kv_bytes_per_token": lambda: _per_token(a),
        "memory.activation_bytes": lambda: _activations(a),
        "memory.communication_bytes": lambda: _plain(a, "communication_bytes", "two messages of the largest step"),
        "memory.context_bytes": lambda: _context(a),
        "memory.usable_bytes": lambda: _usable(a),
        **(reasons_of(a.reasoned, a.tariff) if a.reasoned else {}),
    }


STEP_FACTS = ("step_s", "per_sequence_s", "sampling_s", "per_layer_s", "launch_s")
"""Constants of an engine that are in every step."""


def of_cost(cost: Cost) -> Reason:
    """A cost as a reason: its time, what bounds it, its parts, and the facts behind it."""
    work = f"{text(cost.flops, 'flops')}, {text(cost.bytes, 'bytes')}" if cost.flops or cost.bytes else ""
    bound = f"bound by {cost.bound_by}" if cost.bound_by else ""
    return Reason(
        name=f"{cost.name}: time_s",
        value=cost.time_s,
        rule=", ".join(x for x in (bound, work) if x),
        parts=tuple(of_cost(p) for p in sorted(cost.parts, key=lambda p: -p.time_s)),
        facts=cost.because,
    )


def _engine_facts(a: Answer, *names: str) -> tuple[Fact, ...]:
    facts = a.question.deployment.engine.facts
    return tuple(facts[n] for n in names if n in facts)


RATIO_FACTS = ("memory_ratio", "compute_ratio", "unit_bytes_per_s")
"""How much longer an engine's kernels take in a step than their constants say: constants of another engine or of no
device of the generation, or an operation's time in a step over that alone in a loop."""


def _step(a: Answer, cost: Cost) -> Reason:
    """A step's cost, with how much longer kernels take in it than their constants say, where that is not nothing."""
    found, engine = of_cost(cost), a.question.deployment.engine
    if (engine.memory_ratio, engine.compute_ratio) == (1.0, 1.0):
        return found
    ratios = f"kernels of {engine.kernels}, times the engine's memory ratio, or its compute ratio where operations bind"
    rule = "; ".join(x for x in (found.rule, ratios) if x)
    return replace(found, rule=rule, facts=(*found.facts, *_engine_facts(a, *RATIO_FACTS)))


def _device_facts(a: Answer, *names: str) -> tuple[Fact, ...]:
    facts = a.question.deployment.cluster.device.facts
    return tuple(facts[n] for n in names if n in facts)


def _ttft(a: Answer) -> Reason:
    e, engine = a.estimate, a.question.deployment.engine
    prompt = _step(a, e.prefill_cost)
    entry_s = engine.entry_s(a.question.workload.input_tokens)
    rest = e.ttft_s - entry_s - e.prefill_cost.time_s
    return Reason(
        name="ttft_s",
        value=e.ttft_s,
        rule="front end + a step with the prompt + further steps, the host and waiting",
        parts=(
            Reason(name="front end: time_s", value=entry_s, facts=_engine_facts(a, "request_s", "per_prompt_token_s")),
            prompt,
            Reason(
                name="further steps, host and waiting: time_s",
                value=rest,
                rule="what is left: chunks of a long prompt, prompts ahead, the step under way; less than 0 where "
                "the step shown is fuller than the one that carries the first token",
                facts=_engine_facts(a, *STEP_FACTS),
            ),
        ),
    )


def _tpot(a: Answer) -> Reason:
    e = a.estimate
    rest = e.tpot_s - e.cost.time_s
    return Reason(
        name="tpot_s",
        value=e.tpot_s,
        rule="a decode step on the device + what the host and other prompts add",
        parts=(
            _step(a, e.cost),
            Reason(
                name="host, and steps that carry prompts: time_s",
                value=rest,
                rule="mean over all steps, less the pure decode step",
                facts=_engine_facts(a, *STEP_FACTS, "overlap_frac"),
            ),
        ),
    )


def _latency(a: Answer) -> Reason:
    return Reason(
        name="latency_s",
        value=a.estimate.latency_s,
        rule="ttft + (output tokens - 1) x tpot",
        parts=(_ttft(a), _tpot(a)),
    )


def _requests(a: Answer) -> Reason:
    return Reason(
        name="requests_per_s",
        value=a.estimate.requests_per_s,
        rule="Little's law: requests in flight / latency",
        parts=(Reason(name="concurrency", value=a.estimate.concurrency), _latency(a)),
    )


def _rate(a: Answer) -> Reason:
    tokens = a.question.workload.output_tokens
    return Reason(
        name="output_tokens_per_s",
        value=a.estimate.output_tokens_per_s,
        rule="requests_per_s x output tokens",
        parts=(_requests(a), Reason(name="output_tokens", value=tokens, rule="given")),
    )


def _total_rate(a: Answer) -> Reason:
    w = a.question.workload
    return Reason(
        name="total_tokens_per_s",
        value=a.estimate.total_tokens_per_s,
        rule="requests_per_s x (input + output tokens)",
        parts=(
            _requests(a),
            Reason(name="input_tokens", value=w.input_tokens, rule="given"),
            Reason(name="output_tokens", value=w.output_tokens, rule="given"),
        ),
    )


def _power(a: Answer) -> Reason:
    return Reason(
        name="power_w",
        value=a.estimate.power_w,
        rule="devices x (idle + busy x what the step's operations and bytes draw), never above the limit",
        parts=(Reason(name="num_devices", value=float(a.estimate.num_devices)), of_cost(a.estimate.cost)),
        facts=_device_facts(a, "idle_power_w", "power_limit_w"),
    )


def _energy(a: Answer) -> Reason:
    return Reason(
        name="energy_j_per_token",
        value=a.estimate.energy_j_per_token,
        rule="power_w / output_tokens_per_s",
        parts=(_power(a), _rate(a)),
    )


def _host_power(a: Answer) -> Reason:
    return Reason(
        name="host_power_w",
        value=a.estimate.host_power_w,
        rule="devices x the machine's share of each",
        parts=(Reason(name="num_devices", value=float(a.estimate.num_devices)),),
        facts=_device_facts(a, "host_power_w"),
    )


def _energy_with_host(a: Answer) -> Reason:
    return Reason(
        name="energy_j_per_token_with_host",
        value=a.estimate.energy_j_per_token_with_host,
        rule="(power_w + host_power_w) / output_tokens_per_s",
        parts=(_power(a), _host_power(a), _rate(a)),
    )


def _usd(a: Answer, rate: str, value: float | None) -> Reason:
    tariff = a.tariff
    price = Reason(name="usd_per_hour", value=tariff.usd_per_hour, rule=tariff.because, facts=tariff.facts)
    power = Reason(name="electricity_usd_per_kwh", value=tariff.electricity_usd_per_kwh, rule="given, or none")
    speed = _rate(a) if rate == "output_tokens_per_s" else _total_rate(a)
    return Reason(
        name=f"usd_per_million_{'' if speed.name.startswith('output') else 'total_'}tokens",
        value=value,
        rule=f"(devices x usd_per_hour / 3600 + power_w x electricity) / {rate} x 1e6",
        parts=(price, Reason(name="num_devices", value=float(a.estimate.num_devices)), power, speed),
    )


def _backend(a: Answer, kind: Kind, found: tuple[Choice, ...]) -> Reason:
    engine = a.question.deployment.engine
    inputs = getattr(a.question.deployment.backends, kind)
    rule = "asked for" if inputs else f"the first rule of {engine.name} {engine.version or '(newest)'} that holds"
    if not inputs and not any(c.fact for c in found):
        rule = f"no rule of {engine.name} is known; the kernels of {engine.kernels}"
    return Reason(
        name=f"{kind}_backend", value=backend_words(found), rule=rule, facts=tuple(c.fact for c in found if c.fact)
    )


def _version(a: Answer) -> Reason:
    engine = a.question.deployment.engine
    rule = "given" if engine.version else "not given: the newest release that is known, with its defaults and kernels"
    return Reason(name="engine_version", value=engine.version or "newest", rule=rule)


def _bound_by(a: Answer) -> Reason:
    return Reason(
        name="bound_by",
        value=a.estimate.bound_by,
        rule="the resource that takes most of a step's time",
        parts=(of_cost(a.estimate.cost), of_cost(a.estimate.prefill_cost)),
    )


def _weights(a: Answer) -> Reason:
    d = a.question.deployment
    parameters = float(d.model.num_parameters)
    return Reason(
        name="memory.weights_bytes",
        value=a.estimate.memory.weights_bytes,
        rule=f"parameters on the fullest device of {d.layout}, in {d.formats.weights} where the recipe quantises",
        parts=(
            Reason(
                name="num_parameters",
                value=parameters,
                rule="; ".join(where for _, where in d.model.published) or "the model's config",
            ),
            Reason(name="layout", value=str(d.layout), rule="tp and pp cut the weights; ep cuts the experts"),
        ),
    )


def _usable(a: Answer) -> Reason:
    return Reason(
        name="memory.usable_bytes",
        value=a.estimate.memory.usable_bytes,
        rule="capacity x the engine's memory share",
        facts=(
            *_device_facts(a, "memory_capacity_bytes"),
            *_engine_facts(a, "memory_utilization_frac", "is_utilization_of_free"),
        ),
    )


def _cache(a: Answer) -> Reason:
    return Reason(
        name="memory.kv_capacity_bytes",
        value=a.estimate.memory.kv_capacity_bytes,
        rule="usable - weights - activations - buffers - context",
        parts=(_usable(a), _weights(a), _activations(a), _context(a)),
    )


def _cache_tokens(a: Answer) -> Reason:
    return Reason(
        name="memory.kv_capacity_tokens",
        value=a.estimate.memory.kv_capacity_tokens,
        rule="cache / bytes a token, in whole blocks",
        parts=(_cache(a), _per_token(a)),
        facts=_engine_facts(a, "block_tokens"),
    )


def _per_token(a: Answer) -> Reason:
    d = a.question.deployment
    return Reason(
        name="memory.kv_bytes_per_token",
        value=a.estimate.memory.cache.bytes_per_token,
        rule=f"keys and values of every layer on one device of {d.layout}, in {d.formats.kv}",
    )


def _activations(a: Answer) -> Reason:
    return Reason(
        name="memory.activation_bytes",
        value=a.estimate.memory.activation_bytes,
        rule="the widest pair of tensors at the full token budget, and the logits",
        facts=_engine_facts(a, "max_num_batched_tokens", "max_num_seqs"),
    )


def _context(a: Answer) -> Reason:
    return Reason(
        name="memory.context_bytes",
        value=a.estimate.memory.context_bytes,
        rule="driver, libraries, recorded graphs",
        facts=_engine_facts(a, "context_bytes"),
    )


def _plain(a: Answer, field: str, rule: str) -> Reason:
    value: float = getattr(a.estimate.memory, field)
    return Reason(name=f"memory.{field}", value=value, rule=rule)
