"""The pages about long work: what is asked, how far it is, and what came out."""
