"""How the suite itself runs: what needs the machine for itself has it."""

import os

import pytest
from tree import ROOT


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="the suite runs in one process")
def test_tests_have_groups(request):
    """pytest-xdist keeps a group in one process by a suffix of the test's name (tests/conftest.py forms the groups)."""
    assert request.node.nodeid.endswith(f"@{ROOT / 'tests/test_suite.py'}")
