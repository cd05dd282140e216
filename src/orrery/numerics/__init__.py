"""Number formats: how many bytes an element takes and which peak rate it may use."""
