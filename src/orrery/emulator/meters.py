"""Counters kept while answers are made: times of requests, by replica. All times are the service's own."""

from collections import Counter, defaultdict

from orrery.emulator.histogram import CHOICES, GAP_S, PREEMPTIONS, REQUEST_S, TTFT_S, Histogram, token_buckets
from orrery.emulator.lag import Lag
from orrery.emulator.stream import Choice, Stream

HISTOGRAMS = {
    "time_to_first_token_seconds": ("From the request's arrival to its first token.", TTFT_S),
    "inter_token_latency_seconds": ("Between tokens of one answer.", GAP_S),
    "request_time_per_output_token_seconds": ("Mean of an answer's gaps between tokens.", GAP_S),
    "e2e_request_latency_seconds": ("From the request's arrival to its last token.", REQUEST_S),
    "request_queue_time_seconds": ("From the request's arrival to its place in a batch.", REQUEST_S),
    "request_prefill_time_seconds": ("From a place in a batch to the first token.", REQUEST_S),
    "request_decode_time_seconds": ("From the first token to the last.", REQUEST_S),
    "request_inference_time_seconds": ("From a place in a batch to the last token.", REQUEST_S),
    "request_prompt_tokens": ("Tokens of the prompt.", None),
    "request_generation_tokens": ("Tokens of the answer.", None),
    "request_max_num_generation_tokens": ("Tokens that the answer might have had.", None),
    "request_params_max_tokens": ("The most tokens that were asked for.", None),
    "request_params_n": ("Answers that were asked for.", CHOICES),
    "request_prefill_kv_computed_tokens": ("Prompt tokens that were not found in a cache.", None),
    "request_num_preemptions": ("How often a request gave up its place in the batch.", PREEMPTIONS),
}
"""vLLM's names, what each counts, and its buckets; none: tokens, up to the longest sequence."""


REASONS = ("stop", "length", "abort", "error")
"""Finish reasons: stopped, at the length limit, aborted by the client, or failed."""


class Guesses:
    """Steps that checked guessed tokens, as their answers show them; by the place in the row, those that held."""

    __slots__ = ("by_place", "num_steps")

    def __init__(self) -> None:
        self.num_steps, self.by_place = 0, Counter[int]()

    def add(self, num_accepted: int) -> None:
        """One answer's part of a step."""
        self.num_steps += 1
        for place in range(num_accepted):
            self.by_place[place] += 1


class Meters:
    """Counts of a run."""

    def __init__(self, context_tokens: int, has_guesses: bool = False) -> None:
        self.lag = Lag()
        self.computed_tokens, self.cached_tokens = Counter[int](), Counter[int]()  # of prompts, by replica
        self.guesses: defaultdict[int, Guesses] | None = defaultdict(Guesses) if has_guesses else None
        self.by_replica: dict[int, dict[str, Histogram]] = {}
        self.ended: Counter[tuple[int, str]] = Counter()
        self.refused: Counter[str] = Counter()
        self._token_buckets = token_buckets(context_tokens)

    def of(self, replica: int) -> dict[str, Histogram]:
        """The histograms of a replica."""
        if replica not in self.by_replica:
            self.by_replica[replica] = {
                name: Histogram(buckets or self._token_buckets) for name, (_, buckets) in HISTOGRAMS.items()
            }
        return self.by_replica[replica]

    def tokens(self, stream: Stream, choice: Choice, num_tokens: int, time_s: float) -> None:
        """Tokens of an answer were made; those that come together after the first share the gap before them."""
        if choice.gaps is None:
            found = self.of(choice.course.replica)
            choice.first_s, choice.gaps = time_s, found["inter_token_latency_seconds"]
            found["time_to_first_token_seconds"].add(time_s - stream.arrived_s)
            cached = choice.course.cached_tokens
            self.cached_tokens[choice.course.replica] += cached
            self.computed_tokens[choice.course.replica] += choice.job.num_prompt_tokens - cached
        else:
            if self.guesses is not None:
                self.guesses[choice.course.replica].add(num_tokens - 1)
            choice.gaps.add(time_s - choice.last_s)
        choice.num_tokens += num_tokens
        choice.last_s = time_s

    def end(self, stream: Stream, choice: Choice, reason: str) -> None:
        """An answer has ended: in full (stop, length), or not (abort, error)."""
        self.ended[choice.course.replica, reason] += 1
        if reason not in ("stop", "length"):
            return
        admitted_s = choice.course.admitted_s
        seen = {
            "e2e_request_latency_seconds": choice.last_s - stream.arrived_s,
            "request_queue_time_seconds": admitted_s - stream.arrived_s,
            "request_prefill_time_seconds": choice.first_s - admitted_s,
            "request_decode_time_seconds": choice.last_s - choice.first_s,
            "request_inference_time_seconds": choice.last_s - admitted_s,
            "request_prompt_tokens": choice.job.num_prompt_tokens,
            "request_generation_tokens": choice.num_tokens,
            "request_max_num_generation_tokens": choice.job.answer.num_tokens,
            "request_prefill_kv_computed_tokens": choice.job.num_prompt_tokens - choice.course.cached_tokens,
            "request_num_preemptions": choice.course.num_preemptions,
            "request_params_max_tokens": stream.request.most_tokens,
            "request_params_n": stream.request.num_choices,
        }
        if choice.num_tokens > 1:
            mean_s = (choice.last_s - choice.first_s) / (choice.num_tokens - 1)
            seen["request_time_per_output_token_seconds"] = mean_s
        found = self.of(choice.course.replica)
        for name, value in seen.items():
            found[name].add(value)
