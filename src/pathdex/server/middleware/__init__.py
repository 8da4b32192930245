"""ASGI layers around the app, each independent of the others."""
