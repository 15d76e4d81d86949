"""Which rank hosts which clients and chains: a literal table, and properties over all sizes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fald_hpc.errors import UserError
from fald_hpc.layout import Layout, block, choose

# (ranks, clients, chains, chain groups) -> per rank (clients, chains)
TABLE = [
    ((1, 3, 2, "auto"), [("0-3", "0-2")]),
    ((3, 10, 4, "auto"), [("0-4", "0-4"), ("4-7", "0-4"), ("7-10", "0-4")]),
    ((4, 2, 4, "auto"), [("0-1", "0-2"), ("1-2", "0-2"), ("0-1", "2-4"), ("1-2", "2-4")]),
    ((6, 10, 5, 3), [("0-5", "0-2"), ("5-10", "0-2"), ("0-5", "2-4"), ("5-10", "2-4"), ("0-5", "4-5"), ("5-10", "4-5")]),
    ((2, 1, 2, "auto"), [("0-1", "0-1"), ("0-1", "1-2")]),
]


def text(part: range) -> str:
    """Return a range as start-stop."""
    return f"{part.start}-{part.stop}"


@pytest.mark.parametrize(("arguments", "expected"), TABLE)
def test_table(arguments, expected):
    """Ranks of one chain group are neighbours, clients are split first, larger blocks come first."""
    layout = choose(*arguments)
    assert [(text(layout.clients(r)), text(layout.chains(r))) for r in range(layout.n_ranks)] == expected


@given(st.integers(1, 10**6), st.integers(1, 200))
def test_blocks_cover_once_and_differ_by_at_most_one(n, parts):
    """The blocks follow each other without gap, the larger ones first."""
    blocks = [block(n, parts, part) for part in range(parts)]
    sizes = [len(b) for b in blocks]
    assert blocks[0].start == 0
    assert blocks[-1].stop == n
    assert all(a.stop == b.start for a, b in pairwise(blocks))
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


@given(st.integers(1, 64), st.integers(1, 40), st.integers(1, 40), st.one_of(st.just("auto"), st.integers(1, 40)))
def test_every_client_and_chain_pair_has_one_rank_or_the_layout_is_refused(ranks, clients, chains, groups):
    """No rank is idle; every (client, chain) lives on exactly one rank; a refusal names a layout that works."""
    possible = [g for g in range(1, ranks + 1) if ranks % g == 0 and ranks // g <= clients and g <= chains]
    if not possible if groups == "auto" else groups not in possible:
        with pytest.raises(UserError, match=r"\d"):
            choose(ranks, clients, chains, groups)
        return
    layout = choose(ranks, clients, chains, groups)
    assert isinstance(layout, Layout)
    assert layout.n_ranks == ranks
    pairs = [
        (i, s) for rank in range(ranks) for i in layout.clients(rank) for s in layout.chains(rank)
    ]
    assert len(pairs) == clients * chains == len(set(pairs))
    assert all(len(layout.clients(rank)) and len(layout.chains(rank)) for rank in range(ranks))


def test_refusals_name_what_works():
    """The sentence for idle ranks holds a number of ranks that is accepted."""
    with pytest.raises(UserError, match="use 6 ranks"):
        choose(7, 3, 2)
    assert choose(6, 3, 2).chain_groups == 2
    with pytest.raises(UserError, match="does not divide"):
        choose(5, 3, 4, 2)
    with pytest.raises(UserError, match="only 2 chains"):
        choose(4, 3, 2, 3)
