"""PerfCastDB and its predictor: attention by groups on processors held out, and the mechanism on released rows."""

from collections.abc import Iterator

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.predictors.processors.machine import Machine, get_processor
from orrery.predictors.processors.suites import COMPUTE, STREAMING, instructions_per_s, stream_bytes_per_s
from orrery.predictors.studies.cpu_scores import EXPERIMENT

DIFFERS = "scores are generated, and the processors that are learnt from are drawn around few"


def predict(paper: Paper) -> Iterator[Prediction]:
    """The generation, errors against both baselines, and what was measured on released processors."""
    held_out = paper.setups["held-out"]
    names = [name.strip() for name in held_out.word("platforms").split(",")]
    generations = {int(name.removeprefix("Max ")[1]) for name in names}
    yield Prediction(
        claim="generation",
        predicted=float(max(generations)),
        because=f"second digit of {', '.join(names)}",
    )
    rows = EXPERIMENT(steps=int(held_out.number("num_steps")))
    error = {str(row["predictor"]): float(row["error_frac"]) for row in rows}
    text = ", ".join(f"{name} {percent(value, 1)}" for name, value in error.items())
    for claim, baseline in (("over-line", "score-line"), ("over-perceptron", "score-perceptron")):
        yield Prediction(
            claim=claim,
            predicted=error[baseline] / error["grouped-attention"],
            because=f"mean relative error of six suites on held-out processors: {text}",
            differs=DIFFERS,
        )
    yield from _released()


def _released() -> Iterator[Prediction]:
    """Bandwidths and ratios of scores that the released rows hold."""
    one = {name: [Machine(processor=get_processor(name))] for name in ("8472C", "8487C", "Max 9460", "Max 9468")}
    yield Prediction(
        claim="triad",
        predicted=float(stream_bytes_per_s(one["8472C"])[0]),
        because="two reads at 85.7 % and a write at 58.8 % of 614.4 GB/s, both measured on the 8476C",
    )
    yield Prediction(
        claim="package-mix",
        predicted=float(stream_bytes_per_s(one["Max 9460"])[0]),
        because="389 GB/s a socket of reads alone, and writes that cost as much more as on the 8476C",
    )
    ratio = instructions_per_s(one["8487C"], COMPUTE) / instructions_per_s(one["Max 9468"], COMPUTE)
    yield Prediction(claim="compute-ratio", predicted=float(ratio[0]), because="56 cores at 2.8 GHz against 48 at 2.6")
    ratio = instructions_per_s(one["Max 9468"], STREAMING) / instructions_per_s(one["8487C"], STREAMING)
    yield Prediction(
        claim="streaming-ratio",
        predicted=float(ratio[0]),
        because="389 GB/s of package memory against 263 of eight channels, a kernel that reads 85 % past the cache",
        differs="the assumed kernel waits for latency too, which is the same for both memories",
    )
