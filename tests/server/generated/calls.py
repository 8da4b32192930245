"""Call every endpoint through a generated client: `python calls.py GENERATOR FOLDER URL`.

Runs in the environment of the generators, without Pathdex. Prints one line of JSON: the status of each operation.
"""

from __future__ import annotations

import importlib
import json
import sys
import urllib.request
from typing import Any


def main(generator: str, folder: str, url: str) -> None:
    sys.path.insert(0, folder)
    with urllib.request.urlopen(f"{url}/openapi.json") as answer:
        document = json.load(answer)
    call = {"openapi-python-client": python_client, "openapi-generator": generator_client}[generator](url)
    statuses = {}
    for methods in document["paths"].values():
        for operation in methods.values():
            name = operation["operationId"]
            values = [one["example"] for one in operation.get("parameters", ())]
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            body = None if content is None else (content["schema"]["$ref"].split("/")[-1], content["example"])
            statuses[name] = call(name, values, body)
    print(json.dumps(statuses))


def python_client(url: str) -> Any:
    """openapi-python-client: a module per operation."""
    client = importlib.import_module("made").Client(base_url=url, follow_redirects=True)
    models = importlib.import_module("made.models")

    def call(name: str, values: list[Any], body: Any) -> int:
        module = importlib.import_module(f"made.api.default.{name}")
        given = {} if body is None else {"body": getattr(models, body[0]).from_dict(body[1])}
        answer = module.sync_detailed(*values, client=client, **given)
        # Operations with JSON give an object of the schema's class.
        if answer.headers["content-type"].startswith("application/json") and name != "openapi":
            assert type(answer.parsed).__module__.startswith("made.models"), (name, answer.parsed)
        return int(answer.status_code)

    return call


def generator_client(url: str) -> Any:
    """openapi-generator: a method per operation."""
    module = importlib.import_module("openapi_client")
    api = module.DefaultApi(module.ApiClient(module.Configuration(host=url)))

    def call(name: str, values: list[Any], body: Any) -> int:
        given = [] if body is None else [getattr(module, body[0]).from_dict(body[1])]
        try:
            return int(getattr(api, f"{name}_with_http_info")(*values, *given).status_code)
        except module.ApiException as error:
            return int(error.status)

    return call


if __name__ == "__main__":
    main(*sys.argv[1:])
