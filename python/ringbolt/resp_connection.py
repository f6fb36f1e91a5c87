"""What makes a connection of redis-py, or of valkey-py, one over RDMA."""

import socket

from ringbolt import asyncio_stream
from ringbolt import stream as streams
from ringbolt.stream_socket import StreamSocket


class _Options:
    """What both kinds take besides what their packages' connections do."""

    def __init__(self, *arguments, receive_bytes=0, receive_buffers=2, spin_us=0, service=None, **options):
        self._rdma_service = service
        self._rdma_options = {"receive_bytes": receive_bytes, "receive_buffers": receive_buffers, "spin_us": spin_us}
        super().__init__(*arguments, **options)

    def repr_pieces(self):
        return [*super().repr_pieces(), ("rdma", self.device)]


class OverRdma(_Options):
    """In front of a class Connection: the same over an RDMA stream, with its time limits, retries and health checks.

    Further arguments: receive_bytes (of a receive buffer, 4096 to 16 MiB; 1 MiB) and receive_buffers (1 to 16; 2): the
    server pauses when they are full, so large values go faster with more; spin_us: how many microseconds a call that waits
    polls before it sleeps, 0; service: a ringbolt.stream.Service, the process's if None.

    It is RDMA or an exception that says why there is none: it never falls back to TCP. `device` names what carries it.
    socket_keepalive, socket_keepalive_options and socket_type mean nothing here."""

    @property
    def device(self):
        """The RDMA device that carries this connection; "" while there is none."""
        return self._sock.stream.device if self._sock else ""

    def _connect(self):
        """Tries the addresses of the host in turn, each within socket_connect_timeout; None: 5 s. OSError: the last one's."""
        service = self._rdma_service or streams.default_service()
        found = socket.getaddrinfo(self.host, self.port, 0, socket.SOCK_STREAM)
        for number, (_, _, _, _, address) in enumerate(found, 1):
            try:
                made = service.connect(address[0], self.port, self.socket_connect_timeout, **self._rdma_options)
                return StreamSocket(made, self.socket_timeout)
            except OSError:
                if number == len(found):
                    raise
        raise OSError(f"{self.host} has no address")

    def can_read(self, timeout=0):
        # The descriptor may become readable for less than bytes (a keepalive); the stream knows better than poll().
        # It is asked once where it says yes: it takes a part of an answer out, and would say no without the next part.
        sock = self._sock
        if sock is None or timeout == 0:
            return super().can_read(timeout)
        return super().can_read(0) or (sock.wait_readable(timeout) and super().can_read(0))


class OverRdmaAsynchronously(_Options):
    """Likewise in front of the Connection of redis.asyncio or valkey.asyncio. spin_us is of no use here."""

    @property
    def device(self):
        """The RDMA device that carries this connection; "" while there is none."""
        return self._writer.get_extra_info("stream").device if self._writer else ""

    async def _connect(self):
        self._reader, self._writer = await asyncio_stream.open_connection(
            self.host, self.port, self.socket_connect_timeout, self._rdma_service, **self._rdma_options)
