"""Shell parts of batch scripts: this folder is installed as ``fald_hpc.batch.shell``, for ``fald slurm``."""
