"""What is measured of models: scores of their logits, of clients and classes, and forgetting."""
