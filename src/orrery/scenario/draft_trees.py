"""Draft trees of a scenario: chosen for its device and the sequences in flight; how recurrent models verify one."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.units import text
from orrery.catalog.models import get_model
from orrery.execution.batch import decodes_of
from orrery.execution.draft_trees import (
    Tried,
    best_of,
    checked_ranks,
    prompt_heads,
    ranked,
    tree_heads,
    tried_on,
    uneven_heads,
    widened,
)
from orrery.execution.host import launched_s, wall_s
from orrery.execution.layout import TREE_METHODS, Deployment, DraftHead
from orrery.execution.memory import Infeasible, max_num_seqs
from orrery.execution.prompt_trees import Ranked
from orrery.execution.shard import cache_of
from orrery.execution.step import step
from orrery.models.model import Model, RecurrentMixer
from orrery.scenario.acceptance import read_acceptance
from orrery.scenario.answer import to_json
from orrery.scenario.schema import Scenario
from orrery.serving.estimate import estimate
from orrery.serving.workload import Workload

NUM_LEVELS = {"tree": 4, "prompt-tokens": 3}
"""Positions where one acceptance rate is given for all."""

NUM_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifying:
    """One way in which a model with recurrent states verifies a tree, for all sequences of a step."""

    way: str
    num_tokens: int  # that pass through the model
    num_states: int  # copies of the recurrent state
    state_bytes: float  # of those copies, on each device
    time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """The tree that was chosen, for whom, and the others that were tried."""

    best: Tried
    tried: tuple[Tried, ...]  # best of each number of verified tokens
    num_sequences: int  # of a step
    context_tokens: int
    is_given: bool  # the tree's widths were
    has_ranks: bool  # acceptance was given by rank
    verifying: tuple[Verifying, ...] = ()  # empty for models without recurrent states

    def to_json(self) -> dict[str, Any]:
        """The chosen tree by name, then every tree that was tried, then the ways to verify it."""
        return {
            **_row(self.best),
            "method": self.best.head.method,
            "num_sequences": self.num_sequences,
            "context_tokens": self.context_tokens,
            "level_fracs": list(self.best.head.acceptance_fracs),
            "tried": [_row(t) for t in self.tried],
            "verifying": [to_json(v) for v in self.verifying],
        }

    def notes(self) -> tuple[str, ...]:
        """Sentences about the choice."""
        head, best = self.best.head, self.best
        levels = "+".join(str(n) for n in head.level_nodes if n)
        beside = f" and {head.prompt_tokens} prompt tokens" if head.prompt_tokens else ""
        why = "as given" if self.is_given else f"the best of {len(self.tried)} sizes"
        found = [
            f"draft: {head.method} of {levels} draft tokens{beside} ({why} for {self.num_sequences} sequences in a "
            f"step): {head.tokens_per_step:.3g} tokens a step, {best.speedup_ratio:.3g} times those a second without "
            "drafts"
        ]
        if not self.has_ranks:
            found.append(
                "acceptance: every further draft token at a position is taken to be right as often as the first, where "
                "that is wrong; measured shares by rank go into acceptance_by_position"
            )
        if best.speedup_ratio < 1.0:
            found.append("draft: no tree gains anything here; leave draft out, or measure a higher acceptance rate")
        found += [
            f"draft: verified {v.way}: {v.num_tokens} tokens, {v.num_states} states of {text(v.state_bytes, 'bytes')} "
            f"together, {text(v.time_s, 's')} a step"
            for v in self.verifying
        ]
        return tuple(found)


def _row(tried: Tried) -> dict[str, Any]:
    head = tried.head
    return {
        "level_nodes": [n for n in head.level_nodes if n],
        "prompt_tokens": head.prompt_tokens,
        "verified_tokens": 1 + head.num_checked,
        "tokens_per_step": head.tokens_per_step,
        "step_s": tried.step_s,
        "speedup_ratio": tried.speedup_ratio,
    }


def plan_heads(scenario: Scenario) -> tuple[DraftHead, ...]:
    """Trees that a plan tries on every layout: the one that yields most of each number of verified tokens and depth.

    Depth costs passes of a draft model, and nothing where the prompt is searched.
    """
    best: dict[tuple[int, int], DraftHead] = {}
    for head in _heads(scenario, 1):
        size = head.num_checked, head.num_tokens if head.draft_model else 0
        if size not in best or head.tokens_per_step > best[size].tokens_per_step:
            best[size] = head
    return tuple(best.values())


def _heads(scenario: Scenario, tp: int) -> tuple[DraftHead, ...]:
    """The tree that is given, or every one that may suit."""
    guesses, given = _guesses(scenario), _widths(scenario)
    model = _draft_model(scenario, tp)
    if scenario.draft == "prompt-tokens":
        return tuple(prompt_heads(guesses))
    if given:
        return (widened(_levels(guesses, len(given)), given, model),)
    return tuple(tree_heads(guesses, model))


def with_tree(
    scenario: Scenario, deployment: Deployment, workload: Workload | None
) -> tuple[Deployment, Drafting | None]:
    """The deployment with the tree that suits it; as it was where no tree is asked for."""
    if scenario.draft not in TREE_METHODS:
        return deployment, None
    heads = _heads(scenario, deployment.layout.tp)
    sequences = sequences_of(deployment, workload)
    context = round(workload.input_tokens + workload.output_tokens / 2) if workload else 1024
    tried = tried_on(deployment, heads, sequences=sequences, context_tokens=context)
    best = best_of(tried)
    ways = verifying(deployment, best.head, sequences, context)
    drafting = Drafting(
        best=best,
        tried=_best_by_size(tried),
        num_sequences=sequences,
        context_tokens=context,
        is_given=scenario.draft_tree is not None,
        has_ranks=any(len(row) > 1 for row in read_acceptance(scenario.acceptance_by_position)),
        verifying=ways,
    )
    return replace(deployment, draft_head=best.head), drafting


def sequences_of(deployment: Deployment, workload: Workload | None) -> int:
    """Sequences in a step of one replica: those that are asked for, or that a rate keeps in flight without drafts."""
    most = max_num_seqs(deployment)
    if workload is None:
        return most
    if workload.mode == "open":
        found = estimate(replace(deployment, draft_head=None), workload)
        count = float(most) if isinstance(found, Infeasible) else found.concurrency
    else:
        count = float(workload.batch_size or workload.concurrency)
    return min(most, max(1, round(count / deployment.layout.dp)))


def verifying(deployment: Deployment, head: DraftHead, sequences: int, context: int) -> tuple[Verifying, ...]:
    """Both ways to verify a tree with recurrent states: all nodes in one pass, or each branch with a state of its own.

    In one pass the fadings along each path are added up, and one state a sequence is read [stree-2025]. Branches copy
    the state for every leaf, and a token stands in each branch that it belongs to.
    """
    states = cache_of(deployment).bytes_per_sequence
    if head.method != "tree" or not any(isinstance(b.mixer, RecurrentMixer) for b in deployment.model.blocks):
        return ()
    leaves, depth = max(head.level_nodes), len(head.level_nodes)
    return tuple(
        Verifying(
            way=way,
            num_tokens=sequences * copies * (1 + guesses),
            num_states=sequences * copies,
            state_bytes=states * sequences * copies,
            time_s=_pass_s(deployment, sequences * copies, guesses, context),
        )
        for way, copies, guesses in (("in one pass", 1, head.num_checked), ("branch by branch", leaves, depth))
    )


def _pass_s(deployment: Deployment, sequences: int, guesses: int, context: int) -> float:
    batch = replace(decodes_of(np.array([sequences]), context), guesses=guesses)
    bare = replace(deployment, draft_head=None)
    return float(wall_s(bare.engine, step(bare, batch).time_s, batch.num_rows, launched_s(bare, batch))[0])


def _best_by_size(tried: tuple[Tried, ...]) -> tuple[Tried, ...]:
    found: dict[int, Tried] = {}
    for one in tried:
        before = found.get(one.head.num_checked)
        if before is None or one.speedup_ratio > before.speedup_ratio:
            found[one.head.num_checked] = one
    return tuple(found[size] for size in sorted(found))


def _guesses(scenario: Scenario) -> Ranked:
    """Shares by position and rank."""
    method, listed = scenario.draft or "", read_acceptance(scenario.acceptance_by_position)
    if not listed and scenario.acceptance is None:
        raise ScenarioError(
            f'draft: "{method}" needs acceptance rates, which no model of time can know; write acceptance = 0.7, or '
            'acceptance_by_position = "0.6/0.2,0.5/0.1".'
        )
    count = scenario.draft_tokens or len(listed) or len(_widths(scenario)) or NUM_LEVELS[method]
    if listed and scenario.draft_tokens and len(listed) != count:
        raise ScenarioError(
            f"acceptance_by_position: {len(listed)} positions for draft_tokens = {count}; write {count}."
        )
    if any(len(row) > 1 for row in listed):
        return checked_ranks(listed)
    return ranked([row[0] for row in listed] or [scenario.acceptance or 0.0] * count)


def _levels(guesses: Ranked, levels: int) -> Ranked:
    if len(guesses) != levels:
        raise ScenarioError(
            f"draft_tree: {levels} levels for {len(guesses)} positions of acceptance; write as many of both."
        )
    return guesses


def _widths(scenario: Scenario) -> tuple[int, ...]:
    if scenario.draft_tree is None:
        return ()
    if scenario.draft == "prompt-tokens":
        raise ScenarioError('draft_tree: draft = "prompt-tokens" chooses its own tree; leave it out.')
    try:
        widths = tuple(int(word) for word in scenario.draft_tree.split(","))
    except ValueError:
        widths = (0,)
    if min(widths) < 1:
        raise ScenarioError(
            f"draft_tree: got {scenario.draft_tree!r}; write the draft tokens of each level, such as 4,2,1."
        )
    return widths


def _draft_model(scenario: Scenario, tp: int) -> Model | None:
    if scenario.draft_model is None:
        return None
    if scenario.draft == "prompt-tokens":
        raise ScenarioError('draft_model: draft = "prompt-tokens" has the model guess by itself; leave it out.')
    model = get_model(scenario.draft_model, scenario.assume or "")
    if bad := uneven_heads(model, tp):
        raise ScenarioError(
            f"tp: {tp} does not divide the {bad} attention heads of {model.name}, which makes the draft tokens; write "
            "a divisor of both."
        )
    return model
