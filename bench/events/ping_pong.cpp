// Two processes, both asleep until the other's message comes.

#include <poll.h>

#include <functional>
#include <map>
#include <stdexcept>

#include "base/clock.h"
#include "side.h"

namespace ringbolt::bench {
namespace {

constexpr int kWarmUp = 100;
constexpr std::byte kEnd{1};  // the first byte of the last message

/// Calls `turn` for a while, and notes how long each takes: one at least.
PingPong measure(uint64_t block_ns, const std::function<void()>& turn) {
  PingPong result;
  const uint64_t begin = base::now_ns();
  for (int i = 0; i <= kWarmUp || base::now_ns() - begin < block_ns; ++i) {
    const uint64_t from = base::now_ns();
    turn();
    if (i >= kWarmUp) {
      result.round_trips_ns.push_back(base::now_ns() - from);
    }
  }
  return result;
}

PingPong ping_pong_blocking(bool is_tcp, uint32_t bytes, uint64_t block_ns) {
  PingPong result;
  const auto socket_of = [&](int control, bool is_server) {
    return is_tcp ? connect_tcp(1, control, is_server).front() : control;
  };
  const auto serve = [&](int control) {
    const int socket = socket_of(control, true);
    std::vector<std::byte> data(bytes);
    do {
      read_all(socket, data.data(), data.size());
      write_all(socket, data.data(), data.size());
    } while (data.front() != kEnd);
  };
  const auto call = [&](int control) {
    const int socket = socket_of(control, false);
    std::vector<std::byte> data(bytes);
    const auto turn = [&] {
      write_all(socket, data.data(), data.size());
      read_all(socket, data.data(), data.size());
    };
    result = measure(block_ns, turn);
    data.front() = kEnd;
    turn();
  };
  in_two_processes(serve, call);
  return result;
}

const std::map<std::string, MakeSide>& makers() {
  static const std::map<std::string, MakeSide> all{{"eventfd", make_eventfd_side},
                                                   {"verbs", make_verbs_side},
                                                   {"verbs-write", make_verbs_write_side}};
  return all;
}

}  // namespace

PingPong ping_pong(const std::string& kind, uint32_t bytes, uint64_t block_ns) {
  if (kind == "unix" || kind == "tcp") {
    return ping_pong_blocking(kind == "tcp", bytes, block_ns);
  }
  const auto maker = makers().find(kind);
  if (maker == makers().end()) {
    throw std::runtime_error("ping-pong: no such kind: " + kind);
  }
  PingPong result;
  Shape shape;
  shape.bytes = bytes;
  const auto serve = [&](int control) {
    const auto side = maker->second(shape, control, true);
    pollfd end{control, POLLIN, 0};
    for (bool is_over = false; !is_over;) {
      bool came = false;
      side->wait(50, [&](uint32_t) { came = true; });
      if (came) {
        side->put(0);
        side->flush();
      } else {
        is_over = poll(&end, 1, 0) == 1;  // the client has closed it
      }
    }
  };
  const auto call = [&](int control) {
    const auto side = maker->second(shape, control, false);
    result = measure(block_ns, [&] {
      side->put(0);
      side->flush();
      for (bool came = false; !came;) {
        side->wait(1000, [&](uint32_t) { came = true; });
      }
    });
  };
  in_two_processes(serve, call);
  return result;
}

}  // namespace ringbolt::bench
