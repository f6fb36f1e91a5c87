"""valkey-py's asyncio over RDMA (docs/stream.md):

    pool = valkey.asyncio.ConnectionPool(connection_class=ringbolt.valkey_asyncio.RdmaConnection, host="10.0.0.7", port=6379)
    client = valkey.asyncio.Valkey(connection_pool=pool)
"""

from valkey.asyncio.connection import Connection

from ringbolt.resp_connection import OverRdmaAsynchronously


class RdmaConnection(OverRdmaAsynchronously, Connection):
    """A connection of valkey-py's asyncio over RDMA; see OverRdma. Of one event loop."""
