"""The tests write many small files: that these reach the disk is tested in tests/test_files.py."""

import os

import pytest


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
