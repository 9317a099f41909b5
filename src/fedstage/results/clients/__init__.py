"""How accurate a line's main model is for each client and class, by their names."""
