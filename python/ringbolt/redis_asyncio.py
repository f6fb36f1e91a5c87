"""redis-py's asyncio over RDMA (docs/stream.md):

    pool = redis.asyncio.ConnectionPool(connection_class=ringbolt.redis_asyncio.RdmaConnection, host="10.0.0.7", port=6379)
    client = redis.asyncio.Redis(connection_pool=pool)
"""

from redis.asyncio.connection import Connection

from ringbolt.resp_connection import OverRdmaAsynchronously


class RdmaConnection(OverRdmaAsynchronously, Connection):
    """A connection of redis-py's asyncio over RDMA; see OverRdma. Of one event loop."""
