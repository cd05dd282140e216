"""Real work to hold a prediction against: products, exchanges, a small language model, and a server around it."""
