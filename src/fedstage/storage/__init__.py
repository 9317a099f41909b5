"""Storage: files written whole and verified when read, and a record of the job that made each."""
