"""One file a precision recipe, found because it exists."""
