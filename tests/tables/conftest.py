"""Files for tests of tables."""

import pytest


@pytest.fixture
def file(tmp_path):
    """Write text or bytes to a file of this name and give its path."""

    def write(content, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
