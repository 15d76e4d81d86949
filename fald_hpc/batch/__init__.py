"""Batch jobs of Slurm: what is asked for, whether it fits, the script, and the jobs that were submitted."""
