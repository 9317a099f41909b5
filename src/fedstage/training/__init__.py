"""The training engine: devices, batches, schedules, and the one loop that trains."""
