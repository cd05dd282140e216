"""Inputs of set-ups: pictures and films that are denoised, searches among vectors, graphs, clusters, rays, models that
must fit."""

INPUTS: dict[str, str] = {
    "num_picture_side_pixels": "rows and columns of a generated picture",
    "num_pixels_per_position": "pixels a side that one position of the latent grid stands for",
    "num_denoising_steps": "steps from noise to a picture",
    "num_waiting_steps": "first steps, in which devices wait for each other's patches",
    "num_guided_passes": "passes of the network a step: with the text, and without it",
    "num_text_tokens": "of the prompt that a picture is made to",
    "read_patch_frac": "of each neighbouring patch that attention reads",
}

UNITS = frozenset({"lines", "datasets"})
"""Of program text; and what a study was tried on."""
