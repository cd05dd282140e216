"""The questions that can be asked, from Python and from every window, and their answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from orrery.base.arguments import typed
from orrery.base.cost import Interval
from orrery.execution.choice import backend_words, chosen
from orrery.execution.experts.placed import placed
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.planner.money import Tariff, idle_notes, tariff_of
from orrery.planner.workers import Workers
from orrery.scenario.answer import to_json
from orrery.scenario.answer_ways import Reasoned
from orrery.scenario.capacity_left import Room, room_of
from orrery.scenario.levers.found import of_deployment
from orrery.scenario.levers.idle import NOTED_OF_ONE
from orrery.scenario.levers.idle import idle_notes as unused_levers
from orrery.scenario.own_price import own_usd_per_hour
from orrery.scenario.plan import EVERY_PLAN, IN_FULL, plan_scenario
from orrery.scenario.plan_answer import PlanAnswer, memory_json, price_json
from orrery.scenario.reasoning import OF_OTHER_RUNS, REASONING, reasoned, unused
from orrery.scenario.resolve import REDUNDANCY, Question, resolve
from orrery.scenario.schema import Scenario, merged, refuse_foreign
from orrery.scenario.sustained import SUSTAINED, Sustained, sustained
from orrery.scenario.users import at_users
from orrery.serving.estimate import Estimate
from orrery.serving.estimate import estimate as estimate_deployment
from orrery.serving.intervals import ENDS, OTHER_END

if TYPE_CHECKING:
    from orrery.scenario.show import Table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """One configuration: what it does, what it costs, and what was assumed on the way."""

    question: Question
    estimate: Estimate
    tariff: Tariff
    notes: tuple[str, ...]
    reasoned: Reasoned | None = None  # where many calls make one answer
    sustained: Sustained | None = None  # where use without a pause is asked for
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])  # the question, as a scenario file has it

    @property
    def usd_per_million_tokens(self) -> float | None:
        """Dollars for a million output tokens; None where no price is known."""
        return self._usd_per_million(self.estimate.output_tokens_per_s)

    @property
    def usd_per_million_total_tokens(self) -> float | None:
        """Dollars for a million tokens, prompts counted too."""
        return self._usd_per_million(self.estimate.total_tokens_per_s)

    def _usd_per_million(self, tokens_per_s: float) -> float | None:
        return self.tariff.usd_per_million(self.estimate.num_devices, self.estimate.power_w, tokens_per_s)

    @property
    def room(self) -> Room:
        """Tokens of cache, the longest context, and the most sequences in flight."""
        inputs, lends = self.question.workload, bool(self.settings.get("lend_cache"))
        return room_of(
            self.question.deployment,
            self.estimate.memory,
            inputs.input_tokens,
            inputs.output_tokens,
            lends_cache=lends,
        )

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        e = self.estimate
        return (
            to_json(
                {
                    "ttft_s": e.ttft_s,
                    "tpot_s": e.tpot_s,
                    "latency_s": e.latency_s,
                    "output_tokens_per_s": e.output_tokens_per_s,
                    "total_tokens_per_s": e.total_tokens_per_s,
                    "requests_per_s": e.requests_per_s,
                    "concurrency": e.concurrency,
                    "num_devices": e.num_devices,
                    "memory": {**memory_json(e.memory), "peak_bytes": e.peak_memory_bytes},
                    "power_w": e.power_w,
                    "host_power_w": e.host_power_w,
                    "energy_j_per_token": e.energy_j_per_token,
                    "energy_j_per_token_with_host": e.energy_j_per_token_with_host,
                    "rate_used_frac": e.rate_used_frac,
                    "usd_per_million_tokens": self.usd_per_million_tokens,
                    "usd_per_million_total_tokens": self.usd_per_million_total_tokens,
                    "bound_by": e.bound_by,
                    "room": self.room,
                    "intervals": self.intervals(),
                    "price": price_json(self.tariff),
                    "deployment": deployment_json(self.question.deployment),
                    "settings": self.settings,
                    "notes": self.notes,
                }
            )
            | self._more()
        )

    def _more(self) -> dict[str, Any]:
        """Parts that only some questions have: an answer of many calls, a draft tree."""
        drafting = self.question.drafting
        found: dict[str, Any] = {"answer": self.reasoned.to_json()} if self.reasoned else {}
        if self.sustained:
            found["sustained"] = self.sustained.to_json()
        if drafting:
            found["draft"] = to_json(drafting.to_json())
        if self.question.selection:
            found["kv_selection"] = to_json(self.question.selection.to_json())
        return found

    def intervals(self) -> dict[str, Interval]:
        """Intervals of figures that have one. Dollars go with the inverse of the rate; the price is taken as exact."""
        rates = {
            "usd_per_million_tokens": "output_tokens_per_s",
            "usd_per_million_total_tokens": "total_tokens_per_s",
        }
        money = {name: self._money_interval(name, rate) for name, rate in rates.items()}
        return {**self.estimate.intervals, **{k: v for k, v in money.items() if v}}

    def _money_interval(self, name: str, rate: str) -> Interval | None:
        """Dollars are least where most tokens are made at the least power, and most the other way round."""
        e, value = self.estimate, getattr(self, name)
        power, tokens = e.intervals.get("power_w"), e.intervals.get(rate)
        if value is None or (power is None and tokens is None):
            return None

        def end(end_name: str) -> float:
            power_w = getattr(power, end_name) if power else e.power_w
            tokens_per_s = getattr(tokens, OTHER_END[end_name]) if tokens else getattr(e, rate)
            return self.tariff.usd_per_million(e.num_devices, power_w, tokens_per_s) or value

        because = tokens.because if tokens else "the rate is given; only power is unsure"
        return Interval(**{name: end(name) for name in ENDS}, because=because)


def deployment_json(deployment: Deployment) -> dict[str, Any]:
    """The estimated deployment, by name."""
    return {
        "model": deployment.model.name,
        "device": deployment.cluster.device.name,
        "layout": deployment.layout,
        "formats": deployment.formats,
        "engine": deployment.engine.name,
        "engine_version": deployment.engine.version,
        "backends": {kind: backend_words(found) for kind, found in chosen(deployment).items()},
    } | _placement_json(deployment)


def _placement_json(deployment: Deployment) -> dict[str, Any]:
    """Where experts lie and what of a token's ways that leaves; nothing where they lie in order."""
    if (found := placed(deployment)) is None:
        return {}
    return {
        "expert_placement": {
            "method": found.method,
            "leaves_device_frac": found.leaves_device_frac,
            "leaves_node_frac": found.leaves_node_frac,
            "ordered_device_frac": found.ordered_device_frac,
            "ordered_node_frac": found.ordered_node_frac,
            "fullest_ratio": found.fullest_ratio,
            "ordered_fullest_ratio": found.ordered_fullest_ratio,
            "load_gap_frac": found.load_gap_frac,
            "way_gap_frac": found.way_gap_frac,
            "rank_of_expert": found.where.tolist(),
        }
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class InfeasibleAnswer:
    """Infeasible, with numbers: a result, not an error."""

    infeasible: Infeasible
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])  # the question, as a scenario file has it
    tables: tuple["Table", ...] = ()  # what was asked for beside the configuration

    def table(self, kind: str) -> tuple[Mapping[str, Any], ...]:
        """Rows of a table that was asked for; ScenarioError names the tables that there are."""
        from orrery.scenario.show import rows_of

        return rows_of(self.tables, kind)

    def to_json(self) -> dict[str, Any]:
        """``{"infeasible": {"need", "have", "smallest_change", …}}``."""
        out: dict[str, Any] = {"infeasible": to_json(self.infeasible), "notes": list(self.notes)}
        if self.tables:
            out["techniques"] = {t.kind: to_json(t.rows) for t in self.tables}
        return out | ({"settings": to_json(self.settings)} if self.settings else {})


@typed
def estimate(scenario: Scenario | None = None, /, **settings: Any) -> Answer | InfeasibleAnswer:
    """One configuration: how fast, how much memory, energy and money, and what limits it.

    Settings are those of a scenario file; given beside a scenario they override it.
    """
    inputs = merged(scenario, settings)
    return replace(_estimated(inputs), settings=inputs.written())


def _estimated(scenario: Scenario) -> Answer | InfeasibleAnswer:
    stated = resolve(scenario)
    question = at_users(scenario, stated) if scenario.users else stated
    if isinstance(question, Infeasible):
        return InfeasibleAnswer(infeasible=question, notes=stated.notes)
    found = estimate_deployment(question.deployment, question.workload)
    if isinstance(found, Infeasible):
        return InfeasibleAnswer(infeasible=found, notes=question.notes)
    tariff = tariff_of(
        question.deployment.cluster.device,
        own_usd_per_hour(scenario, question.deployment.cluster.device.name),
        scenario.electricity,
    )
    many = reasoned(scenario, question, found, tariff) if scenario.asks(*REASONING) else None
    if isinstance(many, Infeasible):
        return InfeasibleAnswer(infeasible=many, notes=question.notes)
    notes = (
        *question.notes,
        *found.notes,
        *tariff.notes,
        *idle_notes(tariff, found.rate_used_frac),
        *_lending_notes(scenario, question),
        *_unused_notes(scenario, question),
        *(many.notes if many else unused(scenario) if scenario.asks(*OF_OTHER_RUNS) else ()),
    )
    return Answer(
        question=question,
        estimate=found,
        tariff=tariff,
        notes=tuple(dict.fromkeys(notes)),
        reasoned=many,
        sustained=sustained(scenario, question.deployment, question.workload, found)
        if scenario.asks(*SUSTAINED)
        else None,
    )


def _unused_notes(scenario: Scenario, question: Question) -> tuple[str, ...]:
    """Notes on settings that change no number of this estimate."""
    names = (*NOTED_OF_ONE, "expert_placement") if scenario.expert_placement == REDUNDANCY else NOTED_OF_ONE
    if not scenario.asks(*names):
        return ()
    given = scenario.written()
    return unused_levers(given, of_deployment(question.deployment, given), names)


def _lending_notes(scenario: Scenario, question: Question) -> tuple[str, ...]:
    """Notes on lending in one answer of the closed form."""
    if not scenario.lend_cache:
        return ()
    if (ranks := question.deployment.layout.dp) == 1:
        return ("lend_cache = True: no effect on this deployment: dp is 1: there is no other cache to lend from",)
    return (
        f"lend_cache: one sequence may fill the cache of all {ranks} ranks; what its remote attention costs the others "
        "is simulated (orrery simulate --lend-cache --replicas N)",
    )


@typed
def plan(
    scenario: Scenario | None = None,
    /,
    *,
    all_plans: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    jobs: int = 1,
    ray: str = "",
    **settings: Any,
) -> PlanAnswer:
    """The best ways to serve a model on some devices, for your traffic and objectives.

    Settings are those of a scenario file; given beside a scenario they override it. Worked out in full are the best
    few and the best of each device, or with ``all_plans`` every one that works. ``on_progress`` is told (done, total).
    ``jobs`` processes, or a Ray cluster at the address ``ray``, search parts of a large space; the answer is the same.
    """
    refuse_foreign("plan", settings)
    count = EVERY_PLAN if all_plans else IN_FULL
    return plan_scenario(merged(scenario, settings), count, on_progress, Workers(jobs=jobs, ray=ray))
