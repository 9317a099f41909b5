"""What clients and server exchange: updates, round state, compressed changes and their bytes."""
