"""Settings and fixtures of the whole suite."""

import properties  # noqa: F401  # loads the profile of property tests
from browser import browser, visit  # noqa: F401
from deselected import pytest_deselected, pytest_testnodedown  # noqa: F401
from needs import pytest_collection_modifyitems, pytest_runtest_protocol  # noqa: F401
