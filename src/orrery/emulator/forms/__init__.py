"""The shapes of answers: whole, and as streams of events."""
