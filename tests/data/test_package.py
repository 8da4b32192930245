"""The public names of the data package."""

import subprocess
import sys

import pathdex.data


def test_public_names_are_sorted_and_exist():
    names = pathdex.data.__all__
    constants = [name for name in names if name.isupper()]
    classes = [name for name in names if name[0].isupper() and not name.isupper()]
    functions = [name for name in names if name[0].islower()]
    assert names == sorted(constants) + sorted(classes) + sorted(functions)
    assert all(hasattr(pathdex.data, name) for name in names)


def test_importing_is_cheap():
    code = "import sys, pathdex.data; print([m for m in ('torch', 'pandas', 'scipy', 'numba') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"
