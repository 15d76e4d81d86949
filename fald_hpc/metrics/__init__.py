"""What the draws are worth: moments and their errors, convergence over chains."""
