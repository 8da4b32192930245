"""Tests that try to break Pathdex: long forms behind `make torture`, short forms in `make test`."""
