"""Programs that call every endpoint through generated clients; `make test-clients` runs them."""
