"""What methods reach, and what they cost in bytes, seconds and memory."""
