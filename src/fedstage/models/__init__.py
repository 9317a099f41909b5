"""Models: architectures, initial weights and quantisation."""
