"""An RLHF iteration as a graph of calls: who runs what, and what has to be there first. [ouyang-2022], [mei-2024]

PPO: the actor writes answers; reward, reference and critic read them (inference); actor and critic learn from that.
Tokens and a few floats each travel between calls; they are small beside everything else and cost nothing here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from orrery.base.errors import ScenarioError
from orrery.execution.engine import Engine
from orrery.execution.memory import USABLE_FRAC
from orrery.execution.train.framework import Framework
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.recipe import Recipe
from orrery.hardware.cluster import Cluster
from orrery.models.model import Model

Kind = Literal["generate", "infer", "train"]
"""Kind of a call to its model: generate answers token by token, score them, or learn from them."""

ROLES = ("actor", "critic", "reference", "reward")
"""The models of PPO; critic and reward end in one number a token instead of a vocabulary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of one model; starts when every call that it needs has ended."""

    name: str
    role: str
    kind: Kind
    needs: tuple[str, ...] = ()


def calls_of(
    *, has_critic: bool = True, has_reward: bool = True, has_reference: bool = True, has_logprobs: bool = False
) -> tuple[Call, ...]:
    """The calls of an iteration, in an order in which no call needs a later one: the actor writes, models read what it
    wrote, actor and critic learn from what all of them found."""
    after = ("generate",)
    reading = tuple(
        Call(name=name, role=role, kind="infer", needs=after)
        for name, role, is_there in (
            ("reward", "reward", has_reward),
            ("reference", "reference", has_reference),
            ("values", "critic", has_critic),
            ("log-probabilities", "actor", has_logprobs),
        )
        if is_there
    )
    needs = tuple(c.name for c in reading) or after
    training = [Call(name="train actor", role="actor", kind="train", needs=needs)]
    if has_critic:
        training.append(Call(name="train critic", role="critic", kind="train", needs=needs))
    return (Call(name="generate", role="actor", kind="generate"), *reading, *training)


PPO = calls_of()
"""Proximal policy optimization: six calls of four models."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RlhfJob:
    """Models, lengths and the cluster of one iteration. All prompts are equally long."""

    models: Mapping[str, Model]  # by role, each as a language model; heads of critic and reward are cut off here
    cluster: Cluster
    framework: Framework
    recipe: Recipe
    engine: Engine  # what generation costs the host, and whose kernels it runs
    batch: int  # prompts of one iteration
    prompt_tokens: int
    output_tokens: int  # of a response, or their mean
    num_mini_batches: int = 4  # updates of actor and critic in one pass over the sequences
    num_epochs: int = 1  # such passes in one iteration
    responses: tuple[int, ...] = ()  # tokens of each response, where they differ; passes see their mean
    calls: tuple[Call, ...] = PPO

    def __post_init__(self) -> None:
        if missing := {c.role for c in self.calls} - self.models.keys():
            raise ScenarioError(f"rlhf: no model for {', '.join(sorted(missing))}; write one for each of them.")
        if self.batch % self.num_mini_batches:
            raise ScenarioError(
                f"rlhf: {self.batch} prompts do not make {self.num_mini_batches} mini-batches; write a divisor of them."
            )

    @property
    def seq_len(self) -> int:
        """Tokens of a prompt with its answer."""
        return self.prompt_tokens + self.output_tokens

    @property
    def room_bytes(self) -> float:
        """Memory of a device that a process finds free."""
        return self.cluster.device.memory_capacity_bytes * USABLE_FRAC

    def training_job(self, role: str, num_sequences: int, framework: Framework | None = None) -> TrainingJob:
        """That role's model on so many whole sequences."""
        return TrainingJob(
            model=self._trained[role],
            cluster=self.cluster,
            framework=framework or self.framework,
            recipe=self.recipe,
            seq_len=self.seq_len,
            global_batch=num_sequences,
            task="full_finetune",
        )

    @cached_property
    def _trained(self) -> dict[str, Model]:
        """Heads of one output for critic and reward; they cost nothing beside a layer."""
        scalar = ("critic", "reward")
        return {r: replace(m, head=None, is_head_tied=False) if r in scalar else m for r, m in self.models.items()}

    def trains(self, role: str) -> bool:
        """Whether any call updates that model."""
        return any(c.role == role and c.kind == "train" for c in self.calls)
