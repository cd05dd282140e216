"""Sarathi-Serve taken apart: mixed steps without chunks, and what a piece of a prompt does to a step of answers."""

from collections.abc import Iterator

import numpy as np

from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.batch import Batch
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.execution.step import step
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.simulate import simulate
from orrery_papers.sarathi_serve.systems import CONTEXT_TOKENS, SEQS, served_on, service, traffic
from orrery_papers.shared.objectives import first_token_s, gap_s

ANSWERS = 32
"""Answers in the step that objectives are counted in: [unstated] full_prefill."""

WHOLE, IN_TURN = "hybrid-batching-only", "chunked-prefill-only"
PARTS = (WHOLE, IN_TURN)

FEW_REQUESTS = (
    "the budget: the artifact's script has half of the paper's, which shortens gaps and delays first tokens; where "
    "whole prompts run, the longest of 128 log-normal lengths, which make the 99th percentile of the gaps"
)


def ablation(paper: Paper) -> Iterator[Prediction]:
    """Table 4: first tokens and gaps where whole prompts run beside answers, where pieces of them do, and where pieces
    and answers take turns."""
    runs: dict[tuple[str, str], Simulated | Infeasible] = {}
    for claim in paper.claims:
        if not claim.id.startswith("ablation-") or claim.missing:
            continue
        setup, part = claim.setup, next((p for p in PARTS if p in claim.id), "both")
        budget = int(setup.number("max_context_tokens" if part == WHOLE else "max_num_batched_tokens"))
        key = setup.name, part
        if key not in runs:
            sent = traffic(setup, setup.number("num_requests_per_s"), int(setup.number("num_requests")))
            runs[key] = simulate(service(setup, "chunks-in-turn" if part == IN_TURN else "sarathi", budget), sent)
        run = runs[key]
        if not isinstance(run, Infeasible):
            found = first_token_s(run, 50.0) if claim.metric == "ttft_p50" else gap_s(run, 99.0)
            because = (
                f"up to {budget} tokens of prompts in a step, and answers alone in the next"
                if part == IN_TURN
                else f"answers first, then up to {budget} tokens of prompts in a step"
            )
            yield Prediction(claim=claim.id, predicted=found, because=because, differs=FEW_REQUESTS)


def pieces(paper: Paper) -> Iterator[Prediction]:
    """Single steps: a whole prompt among answers, and a token of an answer that rides along with a prompt."""
    claims = {claim.id: claim for claim in paper.claims}
    yield _whole_prompt(claims["full-prefill-in-decode"])
    yield _ride(claims["piggyback-token"])


def _whole_prompt(claim: Claim) -> Prediction:
    d = _engine(claim.setup)
    alone, beside = (step_s(d, prompt, CONTEXT_TOKENS, ANSWERS) for prompt in (0, CONTEXT_TOKENS))
    return Prediction(
        claim=claim.id,
        predicted=beside / alone,
        because=f"{beside:.3g} s with a prompt of {CONTEXT_TOKENS} against {alone:.3g} s, {ANSWERS} answers",
        differs="the batch behind the figure, which is drawn: the fewer the answers, the shorter the step without it",
    )


def _ride(claim: Claim) -> Prediction:
    setup, d = claim.setup, _engine(claim.setup)
    prompt, few = int(setup.number("input_tokens")), int(setup.number("num_batch"))
    alone, beside = step_s(d, 0, prompt, few), step_s(d, prompt - few + 1, prompt, few - 1)
    return Prediction(
        claim=claim.id,
        predicted=(alone / few) / (beside / prompt),
        because=f"{few} answers in {alone:.3g} s; {prompt} tokens in {beside:.3g} s, {few - 1} of them of answers",
        differs="the engine of early 2024, whose steps of four answers waited longer for their host",
    )


def _engine(setup: Setup) -> Deployment:
    return served_on(setup, layout=setup.word("layout"), budget_tokens=CONTEXT_TOKENS, max_num_seqs=SEQS)


def step_s(d: Deployment, prompt_tokens: int, context_tokens: int, answers: int) -> float:
    """One step: so many tokens of one prompt, beside so many answers behind ``context_tokens`` each."""
    prompts, tokens, decodes, context = (
        np.array([x]) for x in (min(1, prompt_tokens), prompt_tokens, answers, context_tokens)
    )
    batch = Batch(
        prompt_sequences=prompts,
        prompt_tokens=tokens,
        prompt_context_tokens=tokens,
        decode_sequences=decodes,
        decode_context_tokens=context,
    )
    return float(step(d, batch).time_s[0])
