"""Meta reinforcement fine-tuning: episodes that are needed against episodes that are written."""

from collections.abc import Iterator

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.reasoning.coverage import Difficulty
from orrery_papers.meta_rl_finetuning.regret import Stream

DIFFERS = "the baseline, which does not write at full length on every question; and how success really grows"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Tokens at the same accuracy."""
    setup = paper.setups["episodes"]
    stream = Stream(
        difficulty=Difficulty(
            mean_frac=setup.number("one_try_frac"), evenness_ratio=setup.number("difficulty_evenness_ratio")
        ),
        num_episodes=int(setup.number("num_episodes")),
    )
    words = (
        f"{stream.needed_episodes():.2f} of {stream.num_episodes} episodes are needed for "
        f"{percent(stream.solved_frac(), 1)}; regret {stream.regret_episodes():.2f} episodes, the last of which "
        f"adds {percent(stream.progress()[-1], 2)}"
    )
    yield Prediction(claim="token-efficiency", predicted=stream.saving_ratio(), because=words, differs=DIFFERS)
