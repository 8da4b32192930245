"""A small HTTP server of one file, for the tests of downloads."""

import contextlib
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """Serves one file, with ranges; can drop connections, change the file, or answer with an error."""

    daemon_threads = True

    def __init__(self, content):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = content
        self.break_after = None
        self.status = None
        self.ranges = True
        self.length = True
        self.requests = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/file"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_args):
        pass

    def do_GET(self):
        server, content = self.server, self.server.content
        server.requests.append(self.headers.get("Range"))
        tag = hashlib.md5(content).hexdigest()
        start = 0
        if server.status is not None:
            self.send_error(server.status)
            return
        if self.headers.get("Range") and server.ranges and self.headers.get("If-Range") == f'"{tag}"':
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        if server.length:
            self.send_header("Content-Length", str(len(content) - start))
        self.send_header("ETag", f'"{tag}"')
        self.end_headers()
        end = len(content) if server.break_after is None else min(len(content), start + server.break_after)
        self.wfile.write(content[start:end])


@contextlib.contextmanager
def serving(content):
    server = Server(content)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
