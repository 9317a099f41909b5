"""The bytes that clients send and receive in training, and the memory that prediction needs."""
