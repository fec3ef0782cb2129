from __future__ import annotations

import pytest
from twinlens.similarity.jaccard import JaccardIndex
from twinlens.similarity.posted_jaccard import PostedJaccard


@pytest.fixture(params=[JaccardIndex, PostedJaccard])
def index(request):
    return request.param([{"a", "b", "c"}, {"a", "b", "c", "d"}, {"e"}, set()])


def test_the_score_is_intersection_over_union(index):
    assert list(index.scores({"a", "b", "c"})) == [1.0, 0.75, 0.0, 0.0]


def test_nothing_shares_with_nothing(index):
    assert list(index.scores(set())) == [0.0, 0.0, 0.0, 0.0]
    assert list(index.scores({"never seen"})) == [0.0, 0.0, 0.0, 0.0]


def test_a_row_added_later_is_found(index):
    index.extend([{"a", "f"}])
    assert list(index.scores({"a", "f"})) == [0.25, 0.2, 0.0, 0.0, 1.0]


def test_the_best_come_first_equal_ones_by_row_and_only_where_allowed(index):
    index.extend([{"a", "b", "c"}])
    scores = index.scores({"a", "b", "c"})
    assert index.best(scores, bytearray(b"\1\1\1\1\1"), 9) == [0, 4, 1]
    assert index.best(scores, bytearray(b"\1\1\1\1\1"), 2) == [0, 4]
    assert index.best(scores, bytearray(b"\0\1\1\1\1"), 2) == [4, 1]
