"""The only door for user input: validation lives here."""
