"""Training: devices, batches, schedules, and the one loop that trains."""
