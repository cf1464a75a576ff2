"""Publishes a signed bundle on Maven Central, and waits until it is there.

    central.py BUNDLE NAME ID

Uploads the file BUNDLE as a deployment with this name, and writes the deployment's id to the file
ID. If ID exists, it continues with that deployment, unless that has failed, and uploads nothing:
two deployments of a version would compete. CENTRAL_API is the address of the publisher API,
CENTRAL_TOKEN the user token. Exit codes: 0 published, 1 refused or not published in time, 2 could
not run.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SECONDS = 20  # between two queries
QUERIES = 270  # 90 minutes: Central usually needs less than 30
PENDING = ("PENDING", "VALIDATING", "VALIDATED", "PUBLISHING")
NO_DEPLOYMENT = "NO DEPLOYMENT"  # for an id that Central no longer knows
Post = Callable[..., str]  # a path and a query, optionally a body and its type


def main(arguments: Sequence[str]) -> int:
    try:
        bundle, name, identifier = arguments
        api, token = os.environ["CENTRAL_API"], os.environ["CENTRAL_TOKEN"]
    except (ValueError, KeyError):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        return publish(poster(api, token), Path(bundle), name, Path(identifier), time.sleep)
    except OSError as error:
        print(f"central: {error}", file=sys.stderr)
        return 2


def publish(
    post: Post, bundle: Path, name: str, identifier: Path, sleep: Callable[[float], None]
) -> int:
    """Publishes the bundle, or continues with the deployment in the file `identifier`."""
    if identifier.is_file():
        deployment = identifier.read_text("utf-8").strip()
        state = query(post, deployment)["deploymentState"]
        print(f"central: deployment {deployment} of an earlier run is {state}", flush=True)
        if state not in ("FAILED", NO_DEPLOYMENT):
            return wait(post, deployment, sleep)
    deployment = upload(post, bundle, name)
    identifier.write_text(f"{deployment}\n", encoding="utf-8")
    print(f"central: uploaded {bundle} as deployment {deployment}", flush=True)
    return wait(post, deployment, sleep)


def wait(post: Post, deployment: str, sleep: Callable[[float], None]) -> int:
    """Queries the state until the deployment is published. A successful upload is not enough."""
    state = ""
    for _ in range(QUERIES):
        status = query(post, deployment)
        if status["deploymentState"] != state:
            state = status["deploymentState"]
            print(f"central: {state}", flush=True)
        if state == "PUBLISHED":
            return 0
        if state not in PENDING:
            errors = json.dumps(status.get("errors"), indent=2)
            print(f"central: {deployment}: expected PUBLISHED, got {state}: {errors}")
            return 1
        sleep(SECONDS)
    print(
        f"central: {deployment}: expected PUBLISHED within {SECONDS * QUERIES // 60} minutes, got "
        f"{state}; hint: run this job again, which continues with this deployment"
    )
    return 1


def query(post: Post, deployment: str) -> dict[str, Any]:
    try:
        status: dict[str, Any] = json.loads(post("status", {"id": deployment}))
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return {"deploymentState": NO_DEPLOYMENT}
    return status


def upload(post: Post, bundle: Path, name: str) -> str:
    """Uploads the bundle as a form with one file, and returns the deployment's id."""
    boundary = uuid.uuid4().hex
    head = (
        f"--{boundary}\r\n"
        f'Content-Disposition: form-data; name="bundle"; filename="{bundle.name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    body = head.encode() + bundle.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
    options = {"name": name, "publishingType": "AUTOMATIC"}
    return post("upload", options, body, f"multipart/form-data; boundary={boundary}").strip()


def poster(api: str, token: str) -> Post:
    def post(path: str, options: dict[str, str], body: bytes = b"", kind: str = "") -> str:
        address = f"{api.rstrip('/')}/{path}?{urllib.parse.urlencode(options)}"
        request = urllib.request.Request(address, data=body, method="POST")
        request.add_header("Authorization", f"Bearer {token}")
        if kind:
            request.add_header("Content-Type", kind)
        with urllib.request.urlopen(request, timeout=600) as answer:
            return str(answer.read().decode())

    return post


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
