"""Cards: the pictures that stand for a link to a page where it is shared, 1200 by 630 pixels."""
