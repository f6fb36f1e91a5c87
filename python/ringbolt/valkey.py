"""valkey-py over RDMA (docs/stream.md):

    pool = valkey.ConnectionPool(connection_class=ringbolt.valkey.RdmaConnection, host="10.0.0.7", port=6379)
    client = valkey.Valkey(connection_pool=pool)
"""

from valkey.connection import Connection

from ringbolt.resp_connection import OverRdma


class RdmaConnection(OverRdma, Connection):
    """A connection of valkey-py over RDMA; see OverRdma. Not thread-safe: a pool gives one to each thread."""
