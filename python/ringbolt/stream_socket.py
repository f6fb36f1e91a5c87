"""A stream in the shape of a socket, for programs that want one."""

import os

from ringbolt import stream as streams

_DRAIN_S = 0.2  # for what was written last to reach the peer when the connection ends


class StreamSocket:
    """What redis-py and the like call of socket.socket, on a Stream, which it owns. Time limits and exceptions are those of
    socket.socket. Not a socket for the kernel: fileno() is for poll() and epoll alone, and stands for reading.

    Thread-safe as a Stream is."""

    def __init__(self, stream, timeout=None):
        self.stream = stream
        self._timeout = timeout

    def settimeout(self, timeout):
        self._timeout = timeout

    def gettimeout(self):
        return self._timeout

    def setblocking(self, blocking):
        self._timeout = None if blocking else 0

    def recv(self, size, flags=0):
        """flags: MSG_PEEK or 0."""
        if flags:
            return self.stream.peek(size, self._timeout)
        return self.stream.read(size, self._timeout)

    def recv_into(self, buffer, nbytes=0):
        return self.stream.read_into(memoryview(buffer)[:nbytes] if nbytes else buffer, self._timeout)

    def send(self, data):
        return self.stream.write(data, self._timeout)

    def sendall(self, data):
        self.stream.write_all(data, self._timeout)

    def wait_readable(self, timeout):
        """Whether there is something to read, or the end, within `timeout` seconds."""
        try:
            return bool(self.stream.wait(streams.READABLE, timeout) & (streams.READABLE | streams.ENDED))
        except TimeoutError:
            return False

    def fileno(self):
        try:
            self.stream.wait(streams.READABLE, 0)  # what is none of the program's business is no reason to be readable
            return self.stream.fileno()
        except OSError:
            return -1

    def getpeername(self):
        host, _, port = self.stream.peer.rpartition(":")
        return host.strip("[]"), int(port or 0)

    def getsockname(self):
        """The device, since a stream has no port of its own that tells anything."""
        return self.stream.device, 0

    def shutdown(self, how):
        """Both directions, whatever `how` says; waits for 0.2 s at most until the last bytes have arrived."""
        del how
        self.stream.end(_DRAIN_S)

    def close(self):
        self.stream.close()

    def __repr__(self):
        try:
            return f"<StreamSocket to {self.stream.peer} over {self.stream.device} in process {os.getpid()}>"
        except OSError:
            return "<StreamSocket, closed>"
