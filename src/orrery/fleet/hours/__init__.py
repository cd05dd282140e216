"""Power, money and carbon hour by hour, and work that may wait for cheap or clean hours."""
