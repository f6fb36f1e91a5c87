#!/usr/bin/env python3
"""redis-py over RDMA: stores and fetches a value, one by one and in a pipeline. Works with a server of the same folder and
with Valkey.

    PYTHONPATH=python examples/key-value/client.py ADDRESS [PORT]

Exit status 1: there is no server, or no RDMA; what is said tells which."""

import sys

import redis

from ringbolt.redis import RdmaConnection

address, port = (*sys.argv[1:3], "6379")[:2]
options = {} if redis.__version__.startswith("4.") else {"protocol": 2}  # the example knows no HELLO
pool = redis.ConnectionPool(connection_class=RdmaConnection, host=address, port=int(port), socket_timeout=5, **options)
client = redis.Redis(connection_pool=pool)
try:
    client.set("greeting", "hello")
    print(client.get("greeting").decode())
    pipeline = client.pipeline(transaction=False)
    for number in range(1000):
        pipeline.set(f"key{number}", number)
    print(f"{sum(pipeline.execute())} values stored by one pipeline")
except redis.ConnectionError as problem:
    sys.exit(f"client.py: {problem}")
connection = pool.get_connection("PING")
print(f"over {connection.device}")
pool.release(connection)
