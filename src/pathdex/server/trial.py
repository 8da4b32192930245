"""A new model is opened and queried in a process of its own before any worker takes it over.

Whatever a model does to that process, the workers keep answering from the old one. The verdict is kept in the user's
cache, so that a version is tried once, not once per worker.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from pathlib import Path

from pathdex.errors import BundleError, PathdexError, ServerError
from pathdex.server.model_loader import ModelLoader
from pathdex.storage import verified

log = logging.getLogger("pathdex.server")

TRIAL_SECONDS = 900.0
"""A trial that takes longer is a refusal."""
REFUSED_SECONDS = 600.0
"""How long a refusal counts: a trial also fails when memory is short."""
REFUSED = "refused"
_running: set[subprocess.Popen[bytes]] = set()


def try_model(loader: ModelLoader) -> str:
    """Try the model at the loader's path; returns its version, or raises `BundleError` with the reason."""
    key = loader.trial_key()
    with verified.entry_lock(key):
        entry = verified.read_entry(key)
        if isinstance(version := entry.get(verified.TRIAL), str):
            return version
        refused = entry.get(REFUSED)
        if isinstance(refused, dict) and time.time() - refused.get("time", 0) < REFUSED_SECONDS:
            raise BundleError(str(refused.get("reason")))
        try:
            version = run_trial(loader)
        except BundleError as error:
            verified.write_entry(key, {**entry, REFUSED: {"reason": str(error), "time": time.time()}})
            raise
        verified.write_entry(key, {**entry, verified.TRIAL: version})
        return version


def run_trial(loader: ModelLoader, seconds: float = TRIAL_SECONDS) -> str:
    """Load, verify and query the model in another process; returns its version."""
    given = {
        "model": loader.model,
        "catalogue": loader.catalogue,
        "catalogue_item": loader.catalogue_item,
        "catalogue_lists": dict(loader.catalogue_lists),
    }
    request = json.dumps(given, default=str)
    command = [sys.executable, "-m", "pathdex.server.trial"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        _running.add(done)
        try:
            written, errors = done.communicate(request.encode(), timeout=seconds)
        except subprocess.TimeoutExpired as error:
            done.kill()
            rule = f"{loader.model} was not loaded and tested within {seconds:g} s; train it again"
            raise BundleError(rule) from error
        finally:
            stopped = done not in _running
            _running.discard(done)
    if stopped:
        raise ServerError(f"the server stopped while {loader.model} was tried")
    try:
        answer = json.loads(written.splitlines()[-1])
        version, reason = answer.get("version"), answer.get("error")
    except (ValueError, IndexError, AttributeError):
        version = reason = None
    if done.returncode == 0 and isinstance(version, str):
        return version
    if not isinstance(reason, str):
        log.warning("the trial of %s wrote: %s", loader.model, errors.decode("utf-8", "replace")[-2000:])
        reason = f"{loader.model} ended the process that tried it with code {done.returncode}; train it again"
    raise BundleError(reason)


def stop_trials() -> None:
    """End the trials of this process, which stops. They give no verdict."""
    while _running:
        _running.pop().kill()


def main() -> int:
    """Entry point of the trial: one JSON object in, one out."""
    given = json.loads(sys.stdin.read())
    catalogue = None if given["catalogue"] is None else Path(given["catalogue"])
    try:
        loader = ModelLoader(Path(given["model"]), catalogue, given["catalogue_item"], given["catalogue_lists"])
        served = loader.load(verify=True)
    except (PathdexError, OSError) as error:
        print(json.dumps({"error": str(error)}))
        return 1
    print(json.dumps({"version": served.version}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
