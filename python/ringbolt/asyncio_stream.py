"""Streams for asyncio: what asyncio.open_connection() gives, over RDMA. The stream's one descriptor tells of both directions,
so an event loop needs no thread for it. Not thread-safe, as the rest of asyncio; selector loops alone (the usual ones)."""

import asyncio
import socket

from ringbolt import stream as streams

_PIECE_BYTES = 1 << 18
_PIECES = 16  # of one turn, so that nobody has to wait for long
_HIGH_WATER_BYTES = 1 << 20


async def open_connection(host, port, timeout=None, service=None, **options):
    """A StreamReader and a StreamWriter to `host`: its addresses are tried in turn, each for `timeout` seconds; None: 5. The
    options are those of stream.Service.connect(). Raises as that; the writer's get_extra_info("stream") is the Stream."""
    loop = asyncio.get_running_loop()
    service = service or streams.default_service()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for number, (_, _, _, _, address) in enumerate(found, 1):
        stream = service.connect(address[0], port, 0, **options)
        try:
            await asyncio.wait_for(_connected(loop, stream), 5 if timeout is None else timeout)
            break
        except BaseException as problem:
            stream.close()
            if number == len(found) or not isinstance(problem, (OSError, asyncio.TimeoutError)):
                raise
    reader = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    return reader, asyncio.StreamWriter(StreamTransport(loop, stream, protocol), protocol, reader, loop)


async def _connected(loop, stream):
    stream.want(streams.CONNECTED)
    number = stream.fileno()
    try:
        while not (now := stream.wait(streams.CONNECTED, 0)) & (streams.CONNECTED | streams.ENDED):
            ready = asyncio.Event()
            loop.add_reader(number, ready.set)
            await ready.wait()
    finally:
        loop.remove_reader(number)
    if now & streams.ENDED:
        raise ConnectionRefusedError(stream.words)


class StreamTransport(asyncio.Transport):
    """A connected Stream, which it owns, as a transport of asyncio."""

    def __init__(self, loop, stream, protocol):
        super().__init__({"stream": stream, "peername": stream.peer})
        self._loop, self._stream, self._protocol = loop, stream, protocol
        self._number = stream.fileno()
        self._unsent, self._is_closing, self._is_over = bytearray(), False, False
        self._is_paused, self._has_paused_writer = False, False
        protocol.connection_made(self)
        stream.want(streams.READABLE)
        loop.add_reader(self._number, self._turn)

    def _turn(self):
        try:
            self._flush()
            for _ in range(_PIECES):
                if self._is_over or self._is_closing or self._is_paused:
                    return
                data = self._stream.read(_PIECE_BYTES, 0)
                if not data:
                    self._protocol.eof_received()
                    self._end(None)
                else:
                    self._protocol.data_received(data)
        except BlockingIOError:
            pass
        except OSError as problem:
            self._end(problem)

    def _flush(self):
        """After a short write the descriptor also stands for room, so that this is called again."""
        try:
            while self._unsent:
                del self._unsent[:self._stream.write(self._unsent, 0)]
        except BlockingIOError:
            pass
        if self._has_paused_writer and len(self._unsent) < _HIGH_WATER_BYTES // 4:
            self._has_paused_writer = False
            self._protocol.resume_writing()
        if self._is_closing and not self._unsent:
            self._end(None)

    def write(self, data):
        if self._is_over or self._is_closing:
            return
        self._unsent += data
        try:
            self._flush()
        except OSError as problem:
            self._end(problem)
        if len(self._unsent) > _HIGH_WATER_BYTES and not self._has_paused_writer:
            self._has_paused_writer = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data):
        self.write(b"".join(list_of_data))

    def can_write_eof(self):
        return False

    def get_write_buffer_size(self):
        return len(self._unsent)

    def is_reading(self):
        return not self._is_paused

    def pause_reading(self):
        self._is_paused = True
        self._stream.want(0)

    def resume_reading(self):
        self._is_paused = False
        self._stream.want(streams.READABLE)

    def is_closing(self):
        return self._is_closing or self._is_over

    def close(self):
        """When all that was written is on its way."""
        self._is_closing = True
        if not self._is_over and not self._unsent:
            self._end(None)

    def abort(self):
        self._end(None)

    def _end(self, problem):
        if self._is_over:
            return
        self._is_over = True
        self._loop.remove_reader(self._number)
        self._unsent = bytearray()  # not clear(): while the error is handled, its traceback holds a view of the bytes
        try:
            self._stream.end(0)
        except OSError:
            pass
        self._stream.close()
        self._loop.call_soon(self._protocol.connection_lost, problem)
