"""Automatic reading of new papers: classified by rule, ranked, and tried on a deployment."""
