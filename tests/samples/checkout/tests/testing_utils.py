"""What tests may need of the machine they run on."""

import functools
import os
import unittest


def parse_flag_from_env(name, default=False):
    return os.environ.get(name, str(default)).lower() in ("1", "true", "yes")


_run_slow_tests = parse_flag_from_env("RUN_SLOW", default=False)
_run_flaky_tests = parse_flag_from_env("RUN_FLAKY", default=True)


def slow(test_case):
    return unittest.skipUnless(_run_slow_tests, "test is slow")(test_case)


def require_torch(test_case):
    return test_case


def require_accelerator(test_case):
    return unittest.skipUnless("ACCELERATOR" in os.environ, "test requires an accelerator")(test_case)


def require_herbarium(test_case):
    """For the models that read pressed plants with a package of that name."""
    return unittest.skipUnless("HERBARIUM" in os.environ, "test requires herbarium")(test_case)


def is_flaky(max_attempts=3):
    def decorator(test_case):
        @functools.wraps(test_case)
        def attempt(*args, **kwargs):
            for _ in range(max_attempts - 1):
                try:
                    return test_case(*args, **kwargs)
                except AssertionError:
                    continue
            return test_case(*args, **kwargs)

        return unittest.skipUnless(_run_flaky_tests, "test is flaky")(attempt)

    return decorator
