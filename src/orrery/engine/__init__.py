"""Foundation of every simulated run: named streams of random numbers."""
