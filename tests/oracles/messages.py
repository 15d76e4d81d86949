"""How many messages a schedule costs: the table of the specification's section 2, as a function of the coins."""

from collections.abc import Sequence


def count(averaging: Sequence[bool], refresh: Sequence[bool] | None = None, first_step: int = 0) -> int:
    """Messages of the iterations ``first_step, first_step + 1, ...`` with these coins.

    Parameters
    ----------
    averaging, refresh : sequences of bool
        Coins B and B' of each iteration from iteration 0 on. ``refresh=None`` is FALD, which never refreshes and
        needs no message at the start.
    """
    total = 0
    if refresh is None:
        return sum(1 for fired in list(averaging)[first_step:] if fired)
    if first_step == 0:
        total += 1  # the mean gradient at the starting point
    for k in range(first_step, len(averaging)):
        equal_before = k == 0 or averaging[k - 1]
        if averaging[k] and refresh[k]:
            total += 2  # the means of X and of X-tilde travel together, then the mean gradient
        elif averaging[k]:
            total += 1
        elif refresh[k]:
            total += 1 if equal_before else 2
    return total
