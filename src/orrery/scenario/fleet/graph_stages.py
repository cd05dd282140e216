"""Reading a graph of calls: its stages, what each takes on every device, and what a machine costs."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator

from orrery.base.errors import ScenarioError
from orrery.execution.layout import Deployment
from orrery.fleet.ownership import Owned
from orrery.fleet.stages import Stage, Work, answer_work, prompt_cache_bytes, prompt_work
from orrery.planner.money import S_PER_HOUR, tariff_of
from orrery.scenario.fields_graph import GRAPH_BY_NAME, STAGE_BY_NAME
from orrery.scenario.inputs import Inputs, read_asked
from orrery.scenario.kinds import Count, Number, Word
from orrery.scenario.own_price import own_usd_per_hour
from orrery.scenario.ownership import bought, ownership_note, ownership_terms
from orrery.scenario.resolve import deploy, device_names, find, formats_of, layout_of
from orrery.scenario.schema import Scenario, read_scenario

CPU = "processor cores"


def _texts(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]


class StageBlock(Inputs, table=STAGE_BY_NAME):
    """One call of a model, or work of processor cores."""

    name: Word = None
    after: Texts = ()
    model: Word = None
    tp: Count = None
    input_tokens: Number = None
    output_tokens: Number = None
    cpu_s: Number = None
    cores: Count = None
    times: Count = None
    passed_bytes: Number = None
    prompt_on: Texts = ()
    answer_on: Texts = ()


class GraphTop(Inputs, table=GRAPH_BY_NAME):
    """Settings common to all stages."""

    link_bytes_per_s: Number = None
    core_usd_per_hour: Number = None


def blocks_in(raw: Sequence[dict[str, Any]]) -> list[StageBlock]:
    """The stages as they were written, each checked."""
    if not raw:
        raise ScenarioError("graph: has no stage; write [[stage]] with name, model, input_tokens and output_tokens.")
    found: list[StageBlock] = []
    for k, table in enumerate(raw, start=1):
        place = f"graph: [[stage]] {k}"
        block = read_asked(StageBlock, table, STAGE_BY_NAME, place)
        known = [b.name for b in found]
        if block.name is None or block.name in known:
            raise ScenarioError(f"{place}: give it a name of its own.")
        if missing := [name for name in block.after if name not in known]:
            raise ScenarioError(f"{place}: after: {missing[0]!r} is no stage above it; write stages in their order.")
        is_call = block.cpu_s is None
        needed = ("model", "input_tokens", "output_tokens") if is_call else ("cpu_s",)
        if lacking := [name for name in needed if getattr(block, name) is None]:
            raise ScenarioError(f"{place}: {lacking[0]} is missing; write a model with its tokens, or cpu_s.")
        if not is_call and block.model is not None:
            raise ScenarioError(f"{place}: model and cpu_s exclude each other; write two stages.")
        found.append(block)
    return found


def deployments_for(
    scenario: Scenario, blocks: Sequence[StageBlock]
) -> tuple[dict[tuple[str, int, str], Deployment], tuple[str, ...]]:
    """Every model, degree and device that may serve a call."""
    found: dict[tuple[str, int, str], Deployment] = {}
    notes: list[str] = []
    for block in blocks:
        if block.model is None:
            continue
        tp = block.tp or scenario.tp or 1
        for name in device_names(scenario):
            one = read_scenario({**scenario.written(), "model": block.model, "device": name, "tp": tp})
            parts = find(one, name)
            layout, _ = layout_of(one, parts)
            formats, format_notes = formats_of(one, parts)
            notes += [*parts.notes, *format_notes]
            found[block.model, tp, name] = deploy(one, parts, layout, formats)
    return found, tuple(dict.fromkeys(notes))


def stages_of(
    blocks: Sequence[StageBlock], deployments: Mapping[tuple[str, int, str], Deployment], tpot_s: float
) -> list[Stage]:
    """Each call as a prompt and an answer, which its cache joins; processor work as it is."""
    found: list[Stage] = []
    ends: dict[str | None, int] = {}
    for block in blocks:
        after, times, passed = tuple(ends[name] for name in block.after), block.times or 1, block.passed_bytes or 0.0
        if block.cpu_s is not None:
            work = {CPU: Work(busy_s=block.cpu_s * (block.cores or 1) * times, wait_s=block.cpu_s * times)}
            found.append(Stage(name=str(block.name), work=work, passed_bytes=passed, after=after))
        else:
            mine = {n: d for (model, tp, n), d in deployments.items() if (model, tp) == (block.model, block.tp or tp)}
            sizes = float(block.input_tokens or 0.0), float(block.output_tokens or 0.0)
            prompts = {name: prompt_work(d, sizes[0]) for name, d in mine.items() if name in (block.prompt_on or mine)}
            answers = {n: answer_work(d, *sizes, tpot_s) for n, d in mine.items() if n in (block.answer_on or mine)}
            cache = times * max(prompt_cache_bytes(d, sizes[0]) for d in mine.values())
            found.append(
                Stage(name=f"{block.name}: prompt", work=_often(prompts, times), passed_bytes=cache, after=after)
            )
            found.append(
                Stage(
                    name=f"{block.name}: answer",
                    work=_often(answers, times),
                    passed_bytes=passed,
                    after=(len(found) - 1,),
                )
            )
        ends[block.name] = len(found) - 1
    return found


def _often(works: Mapping[str, Work | None], times: int) -> dict[str, Work]:
    """Work done so often; nothing where a device cannot do it."""
    return {
        name: Work(busy_s=work.busy_s * times, wait_s=work.wait_s * times)
        for name, work in works.items()
        if work is not None
    }


def _machine_usd_per_s(scenario: Scenario, deployment: Deployment) -> tuple[float, tuple[str, ...]]:
    """Dollars a second of one machine: rented, or owned where its devices have a price."""
    device, count = deployment.cluster.device, deployment.layout.num_devices
    price = bought(scenario).get(device.name)
    if price is not None:
        watts = count * (device.power_limit_w + device.host_power_w)
        machine = Owned(name=device.name, price_usd=count * price, power_w=watts)
        unknown = () if device.host_power_w else (f"owned: what the host of {device.name} draws is not known",)
        draw = f"owned: {device.name} draws {watts / count:g} W a device all the time, as it is rated with its machine"
        return machine.usd_per_s(ownership_terms(scenario)), (ownership_note(scenario), draw, *unknown)
    tariff = tariff_of(device, own_usd_per_hour(scenario, device.name), None)
    if tariff.usd_per_hour is None:
        raise ScenarioError(
            f"device: no price of {device.name} is known; write usd_per_hour or device_buy_usd, or leave it out."
        )
    return tariff.usd_per_hour * count / S_PER_HOUR, tariff.notes


def rents_of(
    scenario: Scenario,
    deployments: Mapping[tuple[str, int, str], Deployment],
    top: GraphTop,
    blocks: Sequence[StageBlock],
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Dollars a second of a machine of each kind: of the largest degree that a call has there; and of a core."""
    found: dict[str, float] = {}
    notes: list[str] = []
    for (_, _, name), d in deployments.items():
        usd_per_s, more = _machine_usd_per_s(scenario, d)
        found[name] = max(found.get(name, 0.0), usd_per_s)
        notes += more
    if any(b.cpu_s is not None for b in blocks):
        if top.core_usd_per_hour is None:
            raise ScenarioError("graph: core_usd_per_hour is missing; write what a core costs, such as 0.04.")
        found[CPU] = top.core_usd_per_hour / S_PER_HOUR
    if len({d.layout.num_devices for d in deployments.values()}) > 1:
        raise ScenarioError("graph: calls have different tp; give all of them one, so that a machine has one price.")
    return found, tuple(dict.fromkeys(notes))
