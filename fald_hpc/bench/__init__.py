"""``fald bench``: what a step costs, beside what this machine can do, measured in the same call.

Nothing here is used by a run. :mod:`fald_hpc.bench.catalogue` names the workloads, :mod:`fald_hpc.bench.document` is
the JSON, :mod:`fald_hpc.bench.limits` the yardsticks.
"""
