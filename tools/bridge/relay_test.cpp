#include "bridge/relay.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace ringbolt::tools::bridge {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A stream in memory: what is sent lands in `sent`; `unread` is what the peer has sent, in a ring of two pieces.
struct FakeFabric : FabricEnd {
  std::span<std::byte> room() override { return ended ? std::span<std::byte>() : std::span(buffer).first(room_bytes); }
  int send(std::span<const std::byte> filled) override {
    EXPECT_EQ(static_cast<const void*>(filled.data()), buffer.data());
    sent += text_of(filled);
    room_bytes -= filled.size();
    return 0;
  }
  base::Result<Pieces> peek() override {
    if (unread.empty()) {
      return error != 0 ? base::Result<Pieces>(base::fail(error))
             : ended    ? base::Result<Pieces>(Pieces{})
                        : base::Result<Pieces>(base::fail(EAGAIN));
    }
    const size_t first = (unread.size() + 1) / 2;
    return Pieces{bytes_of(unread).first(first), bytes_of(unread).subspan(first)};
  }
  void consume(size_t count) override { unread.erase(0, count); }
  bool is_drained() override { return drained || is_ended(); }
  bool is_ended() override { return ended || error != 0; }

  std::vector<std::byte> buffer = std::vector<std::byte>(1 << 20);
  size_t room_bytes = 1 << 20;
  std::string sent, unread;
  int error = 0;
  bool ended = false, drained = true;
};

struct FakeSocket : SocketEnd {
  base::Result<size_t> read(std::span<std::byte> into) override {
    if (incoming.empty()) {
      return read_error != 0 ? base::Result<size_t>(base::fail(read_error))
             : at_end        ? base::Result<size_t>(size_t{0})
                             : base::Result<size_t>(base::fail(EAGAIN));
    }
    const size_t count = std::min(into.size(), incoming.size());
    std::memcpy(into.data(), incoming.data(), count);
    incoming.erase(0, count);
    return count;
  }
  base::Result<size_t> write(const Pieces& pieces) override {
    if (write_error != 0) {
      return base::fail(write_error);
    }
    const std::string all = text_of(pieces[0]) + text_of(pieces[1]);
    const size_t count = std::min(all.size(), room);
    if (count == 0) {
      return base::fail(EAGAIN);
    }
    written += all.substr(0, count);
    room -= count;
    return count;
  }
  void shut_down() override { is_shut_down = true; }
  bool has_gone() override { return gone; }

  std::string incoming, written;
  size_t room = 1 << 30;
  int read_error = 0, write_error = 0;
  bool at_end = false, is_shut_down = false, gone = false;
};

struct RelayCase : testing::Test {
  bool turn() { return relay.turn(now); }
  FakeFabric fabric;
  FakeSocket socket;
  RelaySettings settings{.linger_ns = 5 * kSecond, .stuck_ns = 60 * kSecond, .flush_ns = 10 * kSecond};
  Relay relay{fabric, socket, settings};
  uint64_t now = kSecond;
};

TEST_F(RelayCase, moves_bytes_both_ways_and_waits_for_more) {
  socket.incoming = "request";
  fabric.unread = "some reply";
  EXPECT_TRUE(turn());
  EXPECT_EQ(fabric.sent, "request");
  EXPECT_EQ(socket.written, "some reply");
  EXPECT_EQ(relay.wants(), (Wants{.socket_readable = true, .fabric_readable = true}));
  EXPECT_EQ(relay.moved().to_fabric_bytes, 7U);
  EXPECT_EQ(relay.moved().to_socket_bytes, 10U);
}

TEST_F(RelayCase, full_stream_stops_reading_the_socket) {
  socket.incoming = "abcdef";
  fabric.room_bytes = 4;
  EXPECT_TRUE(turn());
  EXPECT_EQ(fabric.sent, "abcd");
  EXPECT_EQ(socket.incoming, "ef");
  EXPECT_EQ(relay.wants(), (Wants{.fabric_readable = true, .fabric_writable = true}));
  fabric.room_bytes = 4;
  EXPECT_TRUE(turn());
  EXPECT_EQ(fabric.sent, "abcdef");
}

TEST_F(RelayCase, full_socket_leaves_the_stream_unread_while_the_other_direction_goes_on) {
  fabric.unread = "abcdef";
  socket.room = 2;
  socket.incoming = "x";
  EXPECT_TRUE(turn());
  EXPECT_EQ(fabric.unread, "cdef");
  EXPECT_EQ(fabric.sent, "x");
  EXPECT_EQ(relay.wants(), (Wants{.socket_readable = true, .socket_writable = true}));
  EXPECT_EQ(relay.moved().socket_stalls, 1U);
  socket.room = 100;
  EXPECT_TRUE(turn());
  EXPECT_EQ(socket.written, "abcdef");
}

TEST_F(RelayCase, one_turn_moves_no_more_than_its_share) {
  socket.incoming = std::string(Relay::kTurnBytes * 2, 'a');
  fabric.unread = std::string(Relay::kTurnBytes * 2, 'b');
  EXPECT_TRUE(turn());
  EXPECT_EQ(fabric.sent.size(), Relay::kTurnBytes);
  EXPECT_EQ(socket.written.size(), Relay::kTurnBytes);
  EXPECT_TRUE(relay.wants().socket_readable && relay.wants().fabric_readable);
}

TEST_F(RelayCase, socket_end_lingers_for_replies_then_flushes_and_ends) {
  socket.incoming = "last";
  socket.at_end = true;
  EXPECT_TRUE(turn());
  EXPECT_EQ(fabric.sent, "last");
  EXPECT_EQ(relay.wants(), (Wants{.fabric_readable = true, .deadline_ns = now + 5 * kSecond}));
  now += 4 * kSecond;
  fabric.unread = "reply";
  EXPECT_TRUE(turn());
  EXPECT_EQ(socket.written, "reply");
  EXPECT_EQ(relay.wants().deadline_ns, now + 5 * kSecond);  // each reply begins it anew
  now += 5 * kSecond;
  fabric.drained = false;
  EXPECT_TRUE(turn());
  EXPECT_TRUE(relay.wants().fabric_drained);
  fabric.drained = true;
  EXPECT_FALSE(turn());
  EXPECT_EQ(relay.reason(), "socket-closed");
  EXPECT_FALSE(relay.is_abrupt());
}

TEST_F(RelayCase, socket_that_has_gone_altogether_does_not_linger) {
  socket.at_end = socket.gone = true;
  EXPECT_FALSE(turn());
  EXPECT_EQ(relay.reason(), "socket-closed");
}

TEST_F(RelayCase, stream_end_is_told_behind_its_last_byte_and_last_words_are_thrown_away) {
  fabric.unread = "abcdef";
  fabric.ended = true;
  socket.room = 4;
  EXPECT_TRUE(turn());
  EXPECT_FALSE(socket.is_shut_down);
  EXPECT_EQ(relay.wants(), (Wants{.socket_writable = true, .deadline_ns = now + 60 * kSecond}));
  socket.room = 4;
  socket.incoming = "nobody reads this";
  EXPECT_TRUE(turn());
  EXPECT_EQ(socket.written, "abcdef");
  EXPECT_TRUE(socket.is_shut_down);
  EXPECT_TRUE(socket.incoming.empty());
  EXPECT_EQ(relay.wants(), (Wants{.socket_readable = true, .deadline_ns = now + 5 * kSecond}));
  socket.at_end = true;
  EXPECT_FALSE(turn());
  EXPECT_EQ(relay.reason(), "");  // the stream's own says why
}

TEST_F(RelayCase, sleeping_reader_of_an_ended_stream_is_given_up) {
  fabric.unread = "abcdef";
  fabric.ended = true;
  socket.room = 0;
  EXPECT_TRUE(turn());
  now += 60 * kSecond;
  EXPECT_FALSE(turn());
  EXPECT_EQ(relay.reason(), "socket-stuck");
  EXPECT_TRUE(relay.is_abrupt());
}

TEST_F(RelayCase, reader_that_pauses_after_a_half_close_gets_all) {
  socket.at_end = true;
  fabric.unread = "abcdef";
  socket.room = 2;
  EXPECT_TRUE(turn());
  EXPECT_TRUE(turn());
  EXPECT_EQ(relay.wants(), (Wants{.socket_writable = true, .deadline_ns = now + 60 * kSecond}));
  EXPECT_EQ(relay.moved().socket_stalls, 1U);
  now += 59 * kSecond;
  socket.room = 100;
  EXPECT_TRUE(turn());
  EXPECT_EQ(socket.written, "abcdef");
  EXPECT_EQ(relay.wants().deadline_ns, now + 5 * kSecond);
}

TEST_F(RelayCase, socket_that_never_ends_after_its_stream_is_closed_in_time) {
  fabric.ended = true;
  EXPECT_TRUE(turn());
  now += 5 * kSecond;
  EXPECT_FALSE(turn());
}

TEST_F(RelayCase, failed_stream_is_no_end) {
  fabric.unread = "abc";
  fabric.error = ECONNRESET;
  EXPECT_FALSE(turn());
  EXPECT_EQ(socket.written, "abc");
  EXPECT_TRUE(relay.is_abrupt());
  EXPECT_FALSE(socket.is_shut_down);
}

TEST_F(RelayCase, reset_of_the_socket_lets_what_was_read_arrive) {
  socket.incoming = "abc";
  socket.read_error = ECONNRESET;
  fabric.unread = "nobody takes this";
  socket.write_error = EPIPE;
  fabric.drained = false;
  EXPECT_TRUE(turn());
  fabric.drained = true;
  EXPECT_FALSE(turn());
  EXPECT_EQ(relay.reason(), "socket-reset");
  EXPECT_TRUE(fabric.unread.empty());
}

TEST_F(RelayCase, peer_that_takes_nothing_at_the_end_is_given_up) {
  socket.at_end = socket.gone = true;
  fabric.drained = false;
  EXPECT_TRUE(turn());
  now += 10 * kSecond;
  EXPECT_FALSE(turn());
  EXPECT_EQ(relay.reason(), "flush-timeout");
}

TEST_F(RelayCase, stop_delivers_what_is_under_way_in_both_directions) {
  socket.incoming = "abc";
  EXPECT_TRUE(turn());
  socket.incoming = "not read any more";
  fabric.unread = "reply";
  relay.stop("drained");
  EXPECT_TRUE(turn());
  EXPECT_EQ(fabric.sent, "abc");
  EXPECT_EQ(socket.written, "reply");
  EXPECT_TRUE(socket.is_shut_down);
  EXPECT_EQ(relay.wants().deadline_ns, now + kSecond);
  now += kSecond;
  EXPECT_FALSE(turn());
  EXPECT_EQ(relay.reason(), "drained");
}

}  // namespace
}  // namespace ringbolt::tools::bridge
