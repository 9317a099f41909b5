"""Claims of papers as data, and whether measurements bear them out."""
