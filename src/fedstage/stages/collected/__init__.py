"""What the files of scores and costs are collected from: metrics, tables of traffic, records."""
