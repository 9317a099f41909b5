"""The bytes that clients send and receive in training, and that prediction needs in memory."""
