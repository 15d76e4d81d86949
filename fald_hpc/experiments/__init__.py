"""The experiments of the paper, as functions that the scripts in ``mpi_jobs/`` call."""
