"""What methods reach, beside what they cost in bytes, seconds and memory."""
