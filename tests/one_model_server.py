"""An OpenAI-compatible server of one model, ``tiny``; a subclass says what it does to completions."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar


class OneModelServer(BaseHTTPRequestHandler):
    max_model_len: ClassVar[int] = 2048

    def log_message(self, *args: Any) -> None:
        return

    def send(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        card = {"id": "tiny", "object": "model", "created": 0, "owned_by": "x", "max_model_len": self.max_model_len}
        self.send(200, {"object": "list", "data": [card]})

    def asked(self) -> Any:
        """The JSON of a POST request."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))
