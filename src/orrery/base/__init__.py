"""The cellar: units, errors, sources, costs and the technique registry. Imports nothing above it."""
