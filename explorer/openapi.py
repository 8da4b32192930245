"""Print the server's OpenAPI document, from which `make explorer-types` generates the types of the page."""

import json

from pathdex.server.limits import ServerLimits
from pathdex.server.openapi import describe
from pathdex.server.routes import ROUTES

print(json.dumps(describe(ROUTES, ServerLimits()), sort_keys=True))
