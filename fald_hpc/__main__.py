"""``python -m fald_hpc`` is the command line ``fald``."""

from fald_hpc.cli.main import main

if __name__ == "__main__":
    main()
