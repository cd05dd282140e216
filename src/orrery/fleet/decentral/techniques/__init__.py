"""Compressors of messages and ways to join what workers send, one file each."""
