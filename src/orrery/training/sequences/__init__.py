"""Training on sequences of very different lengths: devices for each by its length, or one mesh for the longest."""
