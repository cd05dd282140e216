"""What every simulated run stands on: named streams of random numbers."""
