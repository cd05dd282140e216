"""What is new, sent out: who wants it, what goes into an issue, letters and feeds, and the pages behind their links."""
