"""Laws of arrival: one file each, found because it is here."""
