#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ringbolt::bench {

/// What a server or a client does with its connections, whatever carries the bytes: messages of one size, in order on
/// each connection. One process has one side, and one thread. Throws std::runtime_error.
class Side {
 public:
  virtual ~Side() = default;
  /// Puts one more message on the connection; it leaves with flush() at the latest. At most as many may be unanswered
  /// as the side was made for.
  virtual void put(uint32_t connection) = 0;
  virtual void flush() = 0;
  /// Sleeps until something has come, or `limit_ms` is over, and calls `take` with the connection of each message.
  virtual void wait(int limit_ms, const std::function<void(uint32_t connection)>& take) = 0;
};

struct Shape {
  uint32_t connections = 1;
  uint32_t bytes = 8;     ///< of a message
  uint32_t pipeline = 1;  ///< messages on one connection that are not answered yet
  // Of verbs alone:
  uint32_t idle = 0;   ///< more connections on the same completion queue, which nothing is ever sent through
  uint32_t churn = 0;  ///< connections that were opened and closed before
  bool polls = false;  ///< it does not sleep
};

/// Both ends of a pair of processes that was forked: `control` is a stream socket to the other one. `is_server` is of
/// the parent's child.
using MakeSide = std::function<std::unique_ptr<Side>(const Shape& shape, int control, bool is_server)>;

std::unique_ptr<Side> make_eventfd_side(const Shape& shape, int control, bool is_server);
std::unique_ptr<Side> make_unix_side(const Shape& shape, int control, bool is_server);
std::unique_ptr<Side> make_tcp_side(const Shape& shape, int control, bool is_server);
/// SENDs, each with a receive that is posted for it.
std::unique_ptr<Side> make_verbs_side(const Shape& shape, int control, bool is_server);
/// WRITEs with immediate data into the other's memory.
std::unique_ptr<Side> make_verbs_write_side(const Shape& shape, int control, bool is_server);

/// Connected to the other process' over TCP loopback, one after the other; the caller closes them.
std::vector<int> connect_tcp(uint32_t connections, int control, bool is_server);

/// Round trips of one message, after a hundred that are not counted. Sockets block in read(), without epoll: what they
/// can do at best.
struct PingPong {
  std::vector<uint64_t> round_trips_ns;
};
PingPong ping_pong(const std::string& kind, uint32_t bytes, uint64_t block_ns);

/// What came of requests and replies, after a tenth of a block that is not counted.
struct Served {
  uint64_t requests = 0;
  uint64_t elapsed_ns = 0;
  std::vector<uint64_t> latencies_ns;
};
/// As many requests under way as the shape has, for so long. Throws std::runtime_error, also where none is answered.
Served request_reply(const MakeSide& make, const Shape& shape, uint64_t block_ns);

/// Runs `child` in a forked process on core 0 and `parent` here, on core 1, each with its end of a stream socket; ends
/// when both have. Throws what the parent throws, and std::runtime_error if the child fails.
void in_two_processes(const std::function<void(int control)>& child, const std::function<void(int control)>& parent);
/// All of it, over a stream socket.
void write_all(int fd, const void* data, size_t length);
void read_all(int fd, void* data, size_t length);

}  // namespace ringbolt::bench
