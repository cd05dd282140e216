"""Claims judged: all of them run again, the checked-in scorecard of what comes out, its page, and curves."""
