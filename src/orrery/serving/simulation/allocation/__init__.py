"""What requests hold, and how they let go of it: seats, blocks of their own and of lenders, their place in a queue."""
