"""The part of a scenario that is about RL post-training."""

from pydantic import BaseModel, Field, field_validator

from orrery.base.errors import nearest
from orrery.rl.job import ALGORITHMS
from orrery.scenario.kinds import Count, Number, Switch, Word, bounds

WORDS = {"algorithm": ALGORITHMS}
"""Settings that are one of a few words."""


class RlScenario(BaseModel):
    """What a step of RL post-training adds to a training job; blank means: take the documented default and say so."""

    rl: Switch = None
    algorithm: Word = None
    prompts_per_step: Count = Field(**bounds("prompts_per_step"))
    generations_per_prompt: Count = Field(**bounds("generations_per_prompt"))
    max_output_tokens: Count = Field(**bounds("max_output_tokens"))
    generation_devices: Count = Field(**bounds("generation_devices"))
    generation_tp: Count = Field(**bounds("generation_tp"))
    generation_pp: Count = Field(**bounds("generation_pp"))
    generation_ep: Count = Field(**bounds("generation_ep"))
    generation_weights: Word = None
    colocated: Switch = None
    max_staleness: Count = Field(**bounds("max_staleness"))
    updates_in_flight: Switch = None
    partial_rollout: Switch = None
    tail_batching: Switch = None
    oversampling: Number = Field(**bounds("oversampling"))
    kept_groups: Number = Field(**bounds("kept_groups"))
    reference: Switch = None
    old_logprobs: Switch = None
    critic_model: Word = None
    reward_model: Word = None
    reward_s: Number = Field(**bounds("reward_s"))
    reward_workers: Count = Field(**bounds("reward_workers"))
    ppo_epochs: Count = Field(**bounds("ppo_epochs"))
    sequence_packing: Switch = None
    offload_training: Switch = None

    @field_validator("algorithm")
    @classmethod
    def _a_known_algorithm(cls, value: str | None) -> str | None:
        known = WORDS["algorithm"]
        if value is not None and value not in known:
            near = nearest(value, known, 1)
            raise ValueError(f"write {near[0]!r}" if near else f"write one of {', '.join(known)}")
        return value
