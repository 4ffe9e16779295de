"""Settings of the whole suite: no test depends on how fast the machine is, and property tests draw the same examples on
every run.
"""

from browser import browser, visit  # noqa: F401  # fixtures for the whole suite
from hypothesis import HealthCheck, settings

settings.register_profile("suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")
