"""redis-py over RDMA (docs/stream.md):

    pool = redis.ConnectionPool(connection_class=ringbolt.redis.RdmaConnection, host="10.0.0.7", port=6379)
    client = redis.Redis(connection_pool=pool)
"""

from redis.connection import Connection

from ringbolt.resp_connection import OverRdma


class RdmaConnection(OverRdma, Connection):
    """A connection of redis-py over RDMA; see OverRdma. Not thread-safe: a pool gives one to each thread."""
