"""Several processes on this machine that exchange buffers, and how long that takes."""
