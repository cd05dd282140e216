"""Inputs of set-ups: routed experts, where they stand and who computes them."""

INPUTS: dict[str, str] = {
    "experts_swept": "routed experts of a layer tried, by comma",
    "devices_swept": "numbers of devices tried, by comma",
    "followed_frac": "share of tokens that go on to the favourite of their expert in the next layer",
    "num_hops": "ways between devices that a token takes through all layers, as solved for by the paper",
    "capacity_ratio": "places of an expert's buffer over the tokens that an even deal would send it",
    "capacities_swept": "such ratios tried, by comma",
    "hidden_swept": "widths of the model tried, by comma",
    "heads_swept": "numbers of attention heads tried, by comma",
    "ffn_ratios_swept": "widths of an expert over that of the model tried, by comma",
    "expert_skew_ratio": "exponent of the power law that the experts' loads follow",
    "skews_swept": "such exponents tried, by comma",
    "host_caches_swept": "such sizes tried in bytes, by comma",
    "num_host_flops_per_s": "products of the host's cores at work, at the rate that they reach",
    "cached_fracs_swept": "such shares tried, by comma",
    "repeat_frac": "correlation of the routers' scores of a token with those of the one before it",
    "prefetch_frac": "share of guesses of the next layer's experts that are right",
    "num_gathered_experts": "experts of a layer that every rank may gather beside its own",
}
