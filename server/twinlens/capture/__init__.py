"""Collect intermediate outputs with decorators, for any `nn.Module`."""
