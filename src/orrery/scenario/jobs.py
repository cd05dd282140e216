"""The questions that people come with, by name: the command that answers each, and its page in the docs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A question, the shape of its answer, the command, the docs page, and where the web answers it."""

    question: str
    answer: str
    command: str
    page: str
    path: str  # of orrery web; blank where only the command answers
    example: Mapping[str, Any]  # settings that its form opens with


CHAT = {"model": "llama-3.1-70b", "max_devices": 8, "trace": "chat", "slo": ["ttft:1000", "tpot:50"]}
LOOP = {"input_tokens": 1024, "output_tokens": 256, "concurrency": 32}

DAY = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 200,
    "rate": 30,
    "days": 0.05,
    "replicas_min": 1,
    "replicas_max": 4,
    "autoscaler": "hpa",
    "cold_start_s": 90,
    "slo": ["p99_ttft:2000"],
}

AGENTS = {
    "model": "qwen3-32b",
    "device": "h100-sxm",
    "tp": 2,
    "sessions": "example-agents",
    "sessions_per_hour": 200,
    "host_cache_bytes": "500GB",
}

SLOW = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "engine": "vllm",
    "engine_version": "0.11.0",
    "runs": "kind,mode,batch_size,input_tokens,output_tokens,ttft_s,tpot_s\n"
    "serving,static,1,512,128,0.02044,0.01377\n"
    "serving,static,16,512,128,0.2574,0.01546\n"
    "serving,static,4,4096,32,0.3878,0.02016",
}
"""Made-up figures: a device whose memory is slow."""

OWN_DEVICE = {
    "like": "rtx-4090",
    "title": "My GPU",
    "memory_capacity_bytes": "32 GB",
    "memory_bandwidth_bytes_per_s": "1.79 TB/s",
    "dense_bf16_flops_per_s": "210 TFLOP/s",
    "model": "llama-3.1-8b",
    "input_tokens": 1024,
    "output_tokens": 256,
    "concurrency": 8,
}

JOBS = (
    Job(
        question="How many GPUs for my users?",
        answer="Devices, layout and launch command for a rate and an SLO",
        command="orrery plan",
        page="how-many-gpus.md",
        path="/plan",
        example={**CHAT, "device": "h100-sxm"},
    ),
    Job(
        question="Does it fit?",
        answer="Memory by category, and how much context is left",
        command="orrery estimate",
        page="will-it-fit.md",
        path="/design",
        example={"model": "llama-3.1-70b", "device": "h100-sxm", "tp": 2, "weights": "fp8", **LOOP},
    ),
    Job(
        question="Which accelerator?",
        answer="Several devices compete for the same traffic and SLO",
        command="orrery plan",
        page="how-many-gpus.md",
        path="/plan",
        example={**CHAT, "device": "h100-sxm,h200-sxm,b200,mi300x"},
    ),
    Job(
        question="Self-host or API?",
        answer="A month of rent, spot, owned devices and a public API, and when each is cheaper",
        command="orrery plan --api-price",
        page="own-rent-or-api.md",
        path="/plan",
        example={
            "model": "llama-3.3-70b",
            "device": "h100-sxm",
            "weights": "fp8",
            "rate": 4,
            "input_tokens": 1000,
            "output_tokens": 250,
            "slo": ["tpot:50"],
            "api_price": "deepinfra/llama-3.3-70b",
            "buy_usd": 35000,
        },
    ),
    Job(
        question="What would a technique bring?",
        answer="Your deployment without it and with it, and from where it helps",
        command="orrery what-if",
        page="what-if.md",
        path="/what-if",
        example={"technique": "token-split", "model": "llama-3.1-70b", "device": "h100-sxm", "tp": 4, **LOOP},
    ),
    Job(
        question="Should I disaggregate?",
        answer="Joint, split and separate prefill and decode at equal devices",
        command="orrery plan --disaggregate",
        page="disaggregate.md",
        path="/disaggregate",
        example={
            "model": "llama-3.1-8b",
            "device": "h100-sxm",
            "max_devices": 4,
            "input_tokens": 4000,
            "output_tokens": 100,
            "slo": ["ttft:2000", "tpot:12"],
            "num_requests": 500,
        },
    ),
    Job(
        question="How will it behave under load?",
        answer="Percentiles of TTFT and TPOT, queues and cache, request by request",
        command="orrery simulate",
        page="under-load.md",
        path="/runs/new",
        example={"kind": "simulate", "model": "llama-3.1-8b", "device": "h100-sxm", "trace": "chat", "rate": 8},
    ),
    Job(
        question="Why am I slow?",
        answer="Faults ranked by how well each explains your measured runs",
        command="orrery calibrate compare",
        page="slower-than-predicted.md",
        path="/diagnose",
        example=SLOW,
    ),
    Job(
        question="What will training cost?",
        answer="Step time, MFU, memory and money of a layout",
        command="orrery train",
        page="training.md",
        path="/training",
        example={"model": "llama-3.1-8b", "device": "h100-sxm", "devices": 64, "global_batch": 256, "seq_len": 4096},
    ),
    Job(
        question="How much cache do agents need?",
        answer="Recorded sessions: how much cache makes their turns hit, tier by tier",
        command="orrery cache-size",
        page="agents.md",
        path="/cache-size",
        example=AGENTS,
    ),
    Job(
        question="Autoscale?",
        answer="Replicas that start, stop and fail over a day: cost, SLO attainment, missed requests by cause",
        command="orrery fleet",
        page="fleet.md",
        path="/fleet",
        example=DAY,
    ),
    Job(
        question="How fast is one kernel?",
        answer="An operator on devices: time, bound, and its variants",
        command="orrery kernel",
        page="kernel.md",
        path="/kernel",
        example={"op": "gemm", "device": "h100-sxm", "m": 4096, "n": 4096, "k": 4096},
    ),
    Job(
        question="Cut a network between device and server?",
        answer="The cut that answers first at each link rate, and where none inside the network does",
        command="orrery split",
        page="split.md",
        path="/split",
        example={"model": "vgg-16", "device": "raspberry-pi-4-8gb", "server": "rtx-4090", "link_rates": "0.5,5,50"},
    ),
    Job(
        question="What does an image cost?",
        answer="A diffusion pipeline: latency by stage, joules and dollars of an image or a second of video",
        command="orrery estimate",
        page="images-and-videos.md",
        path="/pictures",
        example={"model": "black-forest-labs/FLUX.1-dev", "device": "h100-sxm", "ulysses_degree": 4},
    ),
    Job(
        question="My own GPU?",
        answer="A device file from its data sheet, or measured on it",
        command="orrery calibrate device",
        page="add-a-device.md",
        path="/my-device",
        example=OWN_DEVICE,
    ),
)
