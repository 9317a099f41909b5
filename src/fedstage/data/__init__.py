"""Data: data sets, their partition over clients, and the participation of clients in rounds."""
