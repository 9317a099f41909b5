"""The scores of methods, and their costs in bytes, seconds and memory."""
