"""A model that inherits none of the common tests."""

import unittest

from ...toys import ToyModel


class HazelModelTest(unittest.TestCase):
    def test_forward(self):
        self.assertEqual(ToyModel().forward([2]), [4])


class TestHazelNuts:
    def test_count(self):
        assert ToyModel(3).size == 3
