"""From the metrics of an experiment's runs to tables and figures that people read."""
