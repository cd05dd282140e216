"""A service over days as a user states it: FLEET.toml, its blocks, and the answer."""
