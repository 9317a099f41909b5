"""How accurate a recipe's main model is for each client and class, by their names."""
