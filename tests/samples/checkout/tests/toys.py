"""Models that are just models enough to be tested."""


class ToyModel:
    supports_embeds = True
    can_generate = False

    def __init__(self, size=4):
        self.size = size

    def forward(self, values):
        return [value * 2 for value in values]


class ToyGenerator(ToyModel):
    can_generate = True

    def generate(self, values, steps=3):
        for _ in range(steps):
            values = self.forward(values)
        return values


class ToyTester:
    """Makes inputs; the `ModelTester` of a real model test."""

    def __init__(self, parent, is_training=True):
        self.parent = parent
        self.is_training = is_training

    def inputs(self):
        return [1, 2, 3]
