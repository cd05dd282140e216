"""The third window: an OpenAI-compatible server whose answers come when the simulated engine would give them."""
