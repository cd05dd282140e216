"""Files that a person brings: looked at by the real readers in a process of their own, and kept under names of ours."""
