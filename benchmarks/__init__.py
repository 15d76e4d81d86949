"""fald_hpc beside other ways to sample the same thing; ``make bench`` or ``python -m benchmarks``. See README.md."""
