"""Codecs: arrays onto element formats and their codes, tensors in pieces with their scales."""
