"""Training of graph networks on the whole graph: cut by vertices, by layers, or by both."""
