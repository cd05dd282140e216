"""The project's documentation as pages."""
