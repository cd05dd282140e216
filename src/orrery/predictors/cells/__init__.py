"""Convolutional networks to search among: spaces that they are drawn from, their kernels, and how long they take."""
