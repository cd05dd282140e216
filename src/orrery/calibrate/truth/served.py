"""Record of a served run: the time of each token, the contents of each step, and the metrics.

Definitions are those of docs/metrics.md; the JSON has the keys of ``vllm bench serve --save-result``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from orrery.serving.metrics import PERCENTILES
from orrery.serving.requests import Floats, Requests


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step of the server; times from the start of the run."""

    began_s: float  # the model's part of it
    ended_s: float
    num_prompts: int  # 0: all sequences decoded
    num_sequences: int
    num_tokens: int
    has_waited: bool  # the server had nothing to do before


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Served:
    """One run. Times are seconds from its start; ``nan`` where something never happened."""

    requests: Requests
    admitted_s: Floats  # when a request's prompt was let into a step
    token_times_s: tuple[Floats, ...]  # of each request: when its tokens came
    steps: tuple[StepRecord, ...]

    @property
    def first_token_s(self) -> Floats:
        """When each request's first token came."""
        return np.array([times[0] if times.size else np.nan for times in self.token_times_s])

    @property
    def finish_s(self) -> Floats:
        """When each request's last token came; ``nan`` for those that the run left unfinished."""
        requested_tokens = self.requests.output_tokens.tolist()
        return np.array(
            [t[-1] if t.size == n else np.nan for t, n in zip(self.token_times_s, requested_tokens, strict=True)]
        )

    @property
    def latencies_s(self) -> dict[str, Floats]:
        """``ttft``, ``tpot`` and ``e2el`` of the finished requests, and ``itl``, their gaps together."""
        done = np.isfinite(self.finish_s)
        arrive_s, first_s, finish_s = self.requests.arrive_s[done], self.first_token_s[done], self.finish_s[done]
        outputs = self.requests.output_tokens[done]
        long = outputs > 1
        gaps = [np.diff(t) for t, is_done in zip(self.token_times_s, done.tolist(), strict=True) if is_done]
        return {
            "ttft": first_s - arrive_s,
            "tpot": (finish_s - first_s)[long] / (outputs[long] - 1),
            "itl": np.concatenate([*gaps, np.zeros(0)]),
            "e2el": finish_s - arrive_s,
        }

    @property
    def duration_s(self) -> float:
        """First arrival to last finish; 0 where nothing finished."""
        done = self.finish_s[np.isfinite(self.finish_s)]
        return float(done.max() - self.requests.arrive_s[0]) if done.size else 0.0

    @property
    def outside_s(self) -> float:
        """The server's own time a step: the median gap between two steps' models, where it did not wait between."""
        gaps = [b.began_s - a.ended_s for a, b in zip(self.steps, self.steps[1:], strict=False) if not b.has_waited]
        return float(np.median(gaps)) if gaps else 0.0

    @property
    def busy_frac(self) -> float:
        """Share of the run that the model computed."""
        return sum(s.ended_s - s.began_s for s in self.steps) / self.duration_s if self.duration_s else 0.0

    def metrics(self) -> dict[str, float]:
        """The measured columns of a table of serving runs."""
        names = {"ttft": "ttft_s", "tpot": "tpot_s", "itl": "itl_s", "e2el": "latency_s"}
        found: dict[str, float] = {}
        for name, values in self.latencies_s.items():
            if values.size:
                found |= {names[name]: float(values.mean())}
                found |= {f"{names[name]}_p{p}": float(np.percentile(values, p)) for p in (50, 90)}
        rates = self._rates()
        return found | {
            "requests_per_s": rates["request_throughput"],
            "output_tokens_per_s": rates["output_throughput"],
            "total_tokens_per_s": rates["total_token_throughput"],
        }

    def to_json(self, *, model_id: str, request_rate_per_s: float, detailed: bool = False) -> dict[str, Any]:
        """The run as ``vllm bench serve`` writes it: latencies in milliseconds, detailed columns in seconds."""
        done = np.isfinite(self.finish_s)
        found: dict[str, Any] = {
            "date": datetime.now(UTC).strftime("%Y%m%d-%H%M%S"),
            "endpoint_type": "numpy",
            "backend": "numpy",
            "label": None,
            "model_id": model_id,
            "tokenizer_id": model_id,
            "num_prompts": self.requests.count,
            "request_rate": request_rate_per_s if np.isfinite(request_rate_per_s) else "inf",
            "burstiness": 1.0,
            "max_concurrency": None,
            "duration": self.duration_s,
            "completed": int(done.sum()),
            "failed": int((~done).sum()),
            **self._totals(),
            **self._rates(),
        }
        for name, values in self.latencies_s.items():
            found |= {f"{word}_{name}_ms": value for word, value in _spread_ms(values).items()}
        return found | (self._details() if detailed else {})

    def _totals(self) -> dict[str, int]:
        done = np.isfinite(self.finish_s)
        return {
            "total_input_tokens": int(self.requests.input_tokens[done].sum()),
            "total_output_tokens": int(self.requests.output_tokens[done].sum()),
        }

    def _rates(self) -> dict[str, float]:
        totals, duration_s = self._totals(), self.duration_s or np.inf
        completed = int(np.isfinite(self.finish_s).sum())
        return {
            "request_throughput": completed / duration_s,
            "output_throughput": totals["total_output_tokens"] / duration_s,
            "total_token_throughput": sum(totals.values()) / duration_s,
        }

    def _details(self) -> dict[str, Any]:
        """A value a request, in seconds; 0 where an unfinished request has none, as in vLLM."""
        done, arrive_s = np.isfinite(self.finish_s), self.requests.arrive_s
        return {
            "input_lens": self.requests.input_tokens.tolist(),
            "output_lens": [int(times.size) for times in self.token_times_s],
            "ttfts": np.where(done, self.first_token_s - arrive_s, 0.0).tolist(),
            "itls": [np.diff(times).tolist() for times in self.token_times_s],
            "start_times": arrive_s.tolist(),
            "errors": ["" if one else "unfinished when the run ended" for one in done.tolist()],
        }


def _spread_ms(values_s: Floats) -> Mapping[str, float | None]:
    """Mean, median, standard deviation and percentiles in milliseconds; null where there is nothing."""
    words = ("mean", "median", "std", *(f"p{p:g}" for p in PERCENTILES))
    if not values_s.size:
        return dict.fromkeys(words)
    ms = values_s * 1e3
    found = (ms.mean(), np.median(ms), ms.std(), *np.percentile(ms, PERCENTILES))
    return dict(zip(words, map(float, found), strict=True))
