"""Worked examples: questions to begin with."""

from dataclasses import dataclass

from orrery.web.address import query_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A question as text, and where it is answered."""

    name: str
    description: str
    href: str


def _plan(name: str, description: str, **settings: object) -> Example:
    return Example(name=name, description=description, href=f"/plans?{query_of(settings)}")


def _design(name: str, description: str, **settings: object) -> Example:
    return Example(name=name, description=description, href=f"/design?{query_of(settings)}")


EXAMPLES = (
    _plan(
        "Chat with a 70B model",
        "How many H100 or MI300X, if first tokens come within a second?",
        model="llama-3.1-70b",
        device="h100-sxm,mi300x",
        max_devices=8,
        trace="chat",
        slo=["ttft:1000", "tpot:50"],
    ),
    _plan(
        "Large or small devices",
        "Qwen3-32B at 4 requests/s: H100 or L40S?",
        model="qwen3-32b",
        device="h100-sxm,l40s",
        max_devices=8,
        rate=4,
        input_tokens=1024,
        output_tokens=256,
        slo=["tpot:40"],
    ),
    _plan(
        "Code completion",
        "Short answers to long prompts, in FP8 on one node",
        model="qwen3-coder-30b-a3b",
        device="h100-sxm",
        max_devices=8,
        trace="code",
        weights="fp8",
        slo=["ttft:500"],
    ),
    _design(
        "One configuration, explained",
        "Llama 3.1 70B in FP8 on four H100, 64 requests in flight",
        model="llama-3.1-70b",
        device="h100-sxm",
        tp=4,
        weights="fp8",
        concurrency=64,
        input_tokens=1024,
        output_tokens=256,
    ),
    _design(
        "Experts over two nodes",
        "DeepSeek-V3 on sixteen H200: tensor parallel 8, two pipeline stages",
        model="deepseek-v3",
        device="h200-sxm",
        tp=8,
        pp=2,
        concurrency=64,
        input_tokens=2048,
        output_tokens=512,
    ),
    _design(
        "At home",
        "An 8B model in 4 bits on one RTX 4090",
        model="llama-3.1-8b",
        device="rtx-4090",
        weights="int4_weight_only",
        concurrency=1,
        input_tokens=1024,
        output_tokens=256,
    ),
)
