"""The HTTP server and its client. The server needs the extra `server`, the client the extra `client`."""
