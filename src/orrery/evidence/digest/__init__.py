"""Digests by mail and feed: subscriptions, the contents of an issue, letters, and the pages behind their links."""
