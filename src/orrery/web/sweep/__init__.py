"""One setting from end to end: curves, once made and kept, and the point that a slider stands on."""
