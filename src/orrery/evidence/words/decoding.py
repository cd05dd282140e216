"""Inputs of set-ups: guessed tokens, and caches that keep less."""

INPUTS: dict[str, str] = {
    "kept_tokens": "cached tokens of a prompt that stay",
    "observed_tokens": "last tokens of a prompt that choose what stays",
    "kept_bytes_frac": "share of the cache's bytes that stay",
    "top_guess_fracs_1": "how often the first, second, … guess of the next token but one holds, by comma",
    "top_guess_fracs_2": "the same one token further",
    "top_guess_fracs_3": "the same two tokens further",
    "num_prompt_tokens": "trained tokens that stand for later ones",
    "num_prompt_token_copies": "trained vectors for each of them",
    "tree_tokens_swept": "tokens of a checking step tried, by comma",
    "tree_widths": "guesses of a node at each level of a tree, by comma",
    "draft_model": "model that guesses, as the catalogue calls it",
    "num_draft_tokens": "guesses of one round",
    "acceptance_frac": "how often a guess holds once those before it have",
    "num_pool_sequences": "sequences that wait to be batched with others of their length",
}
