"""The browser's window: one local web application, rendered on the server."""
