"""What clients send and receive until training ends, and what predicting needs, from artefacts."""
