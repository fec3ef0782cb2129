from __future__ import annotations

from twinlens.similarity.jaccard import JaccardIndex


def test_the_score_is_intersection_over_union():
    index = JaccardIndex([{"a", "b", "c"}, {"a", "b", "c", "d"}, {"e"}, set()])
    assert index.scores({"a", "b", "c"}) == {0: 1.0, 1: 0.75}


def test_a_query_without_tokens_matches_nothing():
    assert JaccardIndex([{"a"}]).scores(set()) == {}
