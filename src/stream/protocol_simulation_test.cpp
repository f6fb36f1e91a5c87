// Two machines against each other over a wire that keeps the order of each queue and nothing else: what a device and a
// scheduler may do. Every byte arrives, in order, and nothing else does.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <variant>
#include <vector>

#include "stream/protocol.h"

namespace ringbolt::stream {
namespace {

using Random = std::mt19937_64;

/// What byte number `at` of a direction is: depends on its place and the direction.
std::byte pattern(uint64_t at, int side) {
  return static_cast<std::byte>((at * 167 + (at >> 8U) * 13 + static_cast<uint64_t>(side) * 91) & 0xffU);
}

struct SimCommand {
  ControlBytes bytes;
};
struct SimWrite {
  Write write;
  std::vector<std::byte> data;
};
using SimRequest = std::variant<SimCommand, SimWrite>;

/// One end: a machine, its two buffers, the requests that it has posted, and what has arrived and was not looked at.
struct SimEnd {
  SimEnd(Role role, int own_side, uint32_t rx_length, uint32_t rx_buffers, uint64_t bytes)
      : side(own_side),
        total(bytes),
        rx(size_t{rx_length} * rx_buffers),
        protocol({.role = role,
                  .rx_address = kBase,
                  .rx_length = rx_length,
                  .rx_buffers = rx_buffers,
                  .rx_key = static_cast<uint32_t>(own_side) + 1}) {}

  static constexpr uint64_t kBase = 0x7000'0000'0000;
  int side;
  uint64_t total;
  std::vector<std::byte> rx;
  std::vector<std::byte> tx;
  Protocol protocol;
  std::deque<SimRequest> posted;   // on their way
  std::deque<SimRequest> arrived;  // of the peer: their completion waits here, plain WRITEs never get here
  std::deque<uint64_t> sent;       // completions of ours: a WRITE's number, 0 for a command
  uint64_t filled = 0;
  uint64_t read = 0;
  bool knows_it_is_connected = false;
};

class Simulation {
 public:
  Simulation(uint64_t seed, uint32_t rx_client, uint32_t rx_server, uint64_t total)
      : random_(seed),
        ends_{SimEnd(Role::client, 0, rx_client, 1, total),
              SimEnd(Role::server, 1, rx_server, static_cast<uint32_t>(1 + seed % 3), total)} {}

  /// Whether all bytes of both directions came before the bound of steps.
  bool run() {
    for (uint64_t step = 0; step < 3'000'000; ++step) {
      SimEnd& end = ends_[draw(2)];
      act(end, ends_[1 - end.side]);
      if (!ends_[0].protocol.is_alive() || !ends_[1].protocol.is_alive() || ::testing::Test::HasFailure()) {
        return false;
      }
      if (ends_[0].read == ends_[1].total && ends_[1].read == ends_[0].total) {
        return true;
      }
    }
    return false;
  }
  const SimEnd& end(int side) const { return ends_[side]; }

 private:
  uint64_t draw(uint64_t below) { return random_() % below; }

  void act(SimEnd& end, SimEnd& peer) {
    now_ns_ += draw(1'000'000);
    switch (draw(9)) {
      case 0:
        end.knows_it_is_connected = true;
        end.protocol.established(now_ns_);
        break;
      case 1:
        fill(end);
        break;
      case 2:
        flush(end);
        break;
      case 3:
        direct(end);
        break;
      case 4:
        deliver(end, peer);
        break;
      case 5:
        look(end);
        break;
      case 6:
        finish(end);
        break;
      case 7:
        consume(end);
        break;
      default:
        end.protocol.tick(now_ns_);
    }
    while (const auto command = end.protocol.next_command()) {
      end.posted.emplace_back(SimCommand{command->bytes});
    }
  }

  /// A program writes: so many of its bytes into the sending buffer.
  void fill(SimEnd& end) {
    const uint64_t most = std::min<uint64_t>(end.protocol.room(), end.total - end.filled);
    const auto count = static_cast<uint32_t>(most == 0 ? 0 : 1 + draw(most));
    for (uint32_t i = 0; i < count; ++i) {
      end.tx[end.protocol.tx_offset() + i] = pattern(end.filled + i, end.side);
    }
    end.protocol.fill(count);
    end.filled += count;
    if (end.protocol.room() == 0) {
      end.protocol.note_stall(now_ns_);
    }
  }
  void flush(SimEnd& end) {
    if (const auto write = end.protocol.flush()) {
      const auto from = end.tx.begin() + write->offset;
      end.posted.emplace_back(SimWrite{*write, {from, from + write->length}});
    }
  }
  /// From memory of the program's own, in segments.
  void direct(SimEnd& end) {
    if (end.protocol.has_unflushed() || !end.protocol.room()) {
      return;
    }
    const uint64_t left = end.total - end.filled;
    const auto length = static_cast<uint32_t>(std::min<uint64_t>(left, 1 + draw(3000)));
    for (uint32_t done = 0; done < length;) {
      const uint32_t segment = std::min<uint32_t>(length - done, static_cast<uint32_t>(1 + draw(1000)));
      const auto write = end.protocol.flush_direct(segment, done + segment == length);
      if (!write) {
        break;
      }
      std::vector<std::byte> data;
      for (uint32_t i = 0; i < write->length; ++i) {
        data.push_back(pattern(end.filled + i, end.side));
      }
      end.filled += write->length;
      done += write->length;
      end.posted.emplace_back(SimWrite{*write, std::move(data)});
    }
  }
  /// The device carries out the oldest request.
  void deliver(SimEnd& end, SimEnd& peer) {
    if (end.posted.empty()) {
      return;
    }
    SimRequest request = std::move(end.posted.front());
    end.posted.pop_front();
    if (const auto* written = std::get_if<SimWrite>(&request)) {
      const Write& write = written->write;
      const uint64_t at = write.remote_address - SimEnd::kBase;
      ASSERT_EQ(write.remote_key, static_cast<uint32_t>(peer.side) + 1);
      ASSERT_LE(at + write.length, peer.rx.size());
      std::copy(written->data.begin(), written->data.end(), peer.rx.begin() + static_cast<std::ptrdiff_t>(at));
      if (write.is_signaled) {
        end.sent.push_back(write.number);
      }
      if (!write.has_immediate) {
        return;
      }
    } else {
      end.sent.push_back(0);
    }
    peer.arrived.push_back(std::move(request));
  }
  /// The program polls: one completion of a receive.
  void look(SimEnd& end) {
    if (end.arrived.empty()) {
      return;
    }
    const SimRequest request = std::move(end.arrived.front());
    end.arrived.pop_front();
    if (const auto* written = std::get_if<SimWrite>(&request)) {
      end.protocol.take_data(written->write.immediate, written->write.length, now_ns_);
    } else {
      end.protocol.take_command(std::get<SimCommand>(request).bytes, now_ns_);
    }
    if (end.protocol.wants_sending_buffer()) {
      end.tx.resize(end.protocol.tx_length());
      end.protocol.begin_sending();
    }
    ASSERT_FALSE(end.protocol.take_move()) << "no announcement of ours is early";
  }
  void finish(SimEnd& end) {
    if (end.sent.empty()) {
      return;
    }
    const uint64_t number = end.sent.front();
    end.sent.pop_front();
    number == 0 ? end.protocol.finish_command() : end.protocol.finish_write(number);
  }
  void consume(SimEnd& end) {
    const uint32_t unread = end.protocol.unread();
    const auto count = unread == 0 ? 0 : static_cast<uint32_t>(1 + draw(unread));
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(end.rx[(end.protocol.rx_offset() + i) % end.rx.size()], pattern(end.read + i, 1 - end.side))
          << end.read + i;
    }
    end.read += count;
    end.protocol.consume(count);
  }

  Random random_;
  SimEnd ends_[2];
  uint64_t now_ns_ = 1;
};

TEST(ProtocolSimulation, all_bytes_arrive_whatever_the_order_of_events) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const auto length = [&] { return static_cast<uint32_t>(1 + random() % (seed % 3 == 0 ? 7 : 5000)); };
    const uint32_t rx_client = length();
    const uint32_t rx_server = length();
    const uint64_t total = uint64_t{20} * std::min(rx_client, rx_server) + random() % 1000;
    Simulation simulation(seed, rx_client, rx_server, total);
    ASSERT_TRUE(simulation.run()) << "seed " << seed << ", " << name_of(simulation.end(0).protocol.reason()) << ", "
                                  << name_of(simulation.end(1).protocol.reason());
    EXPECT_EQ(simulation.end(0).protocol.statistics().early_announcements, 0U);
    EXPECT_GE(simulation.end(0).protocol.statistics().announcements_received, total / rx_server);
  }
}

/// An hour in which the program does nothing: 1,200 keepalives, more than a stock client has receives. The device takes
/// them `taken_every`-th time only, as that of a busy peer does.
void idle_hour(uint32_t taken_every) {
  constexpr uint64_t kSecond = 1'000'000'000;
  constexpr uint64_t kHour = 3600 * kSecond;
  SimEnd client(Role::client, 0, 4096, 1, 0);
  SimEnd server(Role::server, 1, 4096, 1, 0);
  std::deque<ControlBytes> under_way[2];
  const auto exchange = [&](SimEnd& from, SimEnd& to, uint64_t now_ns, bool is_taken) {
    while (const auto command = from.protocol.next_command()) {
      under_way[from.side].push_back(command->bytes);
    }
    while (is_taken && !under_way[from.side].empty()) {
      to.protocol.take_command(under_way[from.side].front(), now_ns);
      from.protocol.finish_command();
      under_way[from.side].pop_front();
    }
  };
  client.protocol.established(1);
  server.protocol.established(1);
  uint64_t ticks = 0;
  uint64_t last_ns = 1;
  for (uint64_t now_ns = 1; now_ns <= kHour; now_ns = server.protocol.next_tick_ns()) {
    server.protocol.tick(now_ns);
    const bool is_taken = ticks++ % taken_every == 0;
    exchange(server, client, now_ns, is_taken);
    exchange(client, server, now_ns, is_taken);
    ASSERT_TRUE(client.protocol.is_alive() && server.protocol.is_alive()) << now_ns;
    ASSERT_GT(server.protocol.next_tick_ns(), now_ns);
    last_ns = now_ns;
  }
  exchange(server, client, last_ns, true);
  EXPECT_EQ(client.protocol.next_tick_ns(), UINT64_MAX) << "only servers keep alive";
  const Statistics& sent = server.protocol.statistics();
  EXPECT_EQ(sent.keepalives_sent + sent.keepalives_skipped, kHour / (3 * kSecond) - 1);
  EXPECT_EQ(client.protocol.statistics().keepalives_received, sent.keepalives_sent);
  EXPECT_EQ(sent.keepalives_skipped > 0, taken_every > Protocol::kMostKeepalives) << sent.keepalives_skipped;
}

TEST(ProtocolSimulation, idle_hour_passes_with_keepalives) { idle_hour(1); }
TEST(ProtocolSimulation, idle_hour_of_a_busy_peer_skips_some_keepalives) { idle_hour(50); }

}  // namespace
}  // namespace ringbolt::stream
