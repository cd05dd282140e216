"""Many calls to one answer: samples, searches, verifiers, and what they cost together."""
