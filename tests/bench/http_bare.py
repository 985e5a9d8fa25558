#!/usr/bin/env python3
"""A bare hypercorn with a quart-trio application that reads a request and answers it, and does nothing else: the
yardstick of `http_proxy.py`. `http_bare.py PORT`"""

import sys

import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from quart import request
from quart_trio import QuartTrio

ANSWER = (
    b'{"offsets":[{"partition":0,"offset":1000,"error_code":null,"error":null}],'
    b'"value_schema_id":null,"key_schema_id":null}'
)
app = QuartTrio(__name__)


@app.post("/topics/<topic>")
async def produce(topic: str) -> tuple[bytes, int, dict[str, str]]:
    await request.get_data()
    return ANSWER, 200, {"content-type": "application/json"}


if __name__ == "__main__":
    config = Config()
    config.bind = [f"127.0.0.1:{sys.argv[1]}"]
    config.errorlog = None
    config.keep_alive_max_requests = 2**31
    trio.run(serve, app, config)
