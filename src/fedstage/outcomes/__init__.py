"""Results: tables, figures, claims and reports, all from two tidy files of an experiment."""
