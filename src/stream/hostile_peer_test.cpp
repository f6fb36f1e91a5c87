// What a peer may say on the wire, and what it must not: each line of the list of checks that a device has a part in.

#include <gmock/gmock.h>

#include "stream/raw_peer_test_support.h"

namespace ringbolt::stream {
namespace {

using test::patterned;
using test::RawPeer;
using test::soon;
using test::World;

ListenerSettings small() { return {.stream = {.receive_bytes = 65536, .keepalive_ms = 0}}; }

/// A stream to a raw client, which knows where it may write.
struct Session {
  explicit Session(const World& world) : peer(world) {
    auto accepted = world.listener->accept(soon());
    EXPECT_TRUE(accepted);
    stream = std::move(*accepted);
    peer.await_established();
    EXPECT_EQ(stream->await_connected(soon()), 0);
    where = peer.next_command();
  }
  /// Until the stream has ended.
  CloseReason ended() {
    EXPECT_TRUE(stream->await(kEnded, soon()));
    return stream->reason();
  }
  RawPeer peer;
  std::unique_ptr<Stream> stream;
  ControlMessage where;
};

TEST(RawPeer, golden_bytes_of_a_stock_client) {
  const World world(small());
  Session session(world);
  EXPECT_EQ(session.where.opcode, Opcode::register_xfer_memory);
  EXPECT_EQ(session.where.length, 65536U);
  session.peer.announce(session.peer.address(), 16384);
  constexpr std::string_view kPing = "*1\r\n$4\r\nPING\r\n";
  session.peer.write(session.where, 0, std::as_bytes(std::span(kPing)), 14);
  std::array<std::byte, 64> room{};
  ASSERT_EQ(session.stream->read(room, soon()), 14U);
  EXPECT_EQ(std::memcmp(room.data(), kPing.data(), 14), 0);
  constexpr std::string_view kPong = "+PONG\r\n";
  ASSERT_EQ(test::write(*session.stream, std::as_bytes(std::span(kPong))), 7U);
  const ibv_wc completion = session.peer.next_receive();
  EXPECT_EQ(completion.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(completion.imm_data, htonl(7));
  EXPECT_EQ(std::memcmp(session.peer.memory().data(), kPong.data(), 7), 0);
}

TEST(RawPeer, segments_without_immediate_count_with_the_next_that_has_one) {
  const World world(small());
  Session session(world);
  const auto all = patterned(512);
  const auto bytes = std::span(all);
  session.peer.write(session.where, 0, bytes.first(128), std::nullopt);
  session.peer.write(session.where, 128, bytes.subspan(128, 256), std::nullopt);
  session.peer.write(session.where, 384, bytes.subspan(384, 128), 512);
  EXPECT_EQ(test::read_all(*session.stream, 512), all);
}

TEST(RawPeer, data_may_come_before_the_server_has_heard_that_it_is_connected) {
  const World world(small());
  RawPeer peer(world);
  auto accepted = world.listener->accept(soon());
  ASSERT_TRUE(accepted);
  peer.await_established();
  peer.announce(peer.address(), 4096);  // nobody has looked at the server's side yet
  ASSERT_EQ(test::write(**accepted, patterned(10)), 10U);
  // The server's own announcement goes when it hears that it is connected: before its data, or after them.
  std::vector<ibv_wc_opcode> came{peer.next_receive().opcode, peer.next_receive().opcode};
  EXPECT_THAT(came, testing::UnorderedElementsAre(IBV_WC_RECV, IBV_WC_RECV_RDMA_WITH_IMM));
  EXPECT_EQ(std::memcmp(peer.memory().data(), patterned(10).data(), 10), 0);
}

TEST(RawPeer, question_for_features_is_answered_with_none) {
  const World world(small());
  Session session(world);
  session.peer.send(ControlMessage{.opcode = Opcode::get_server_feature, .select = 9}.emit());
  std::thread serving([&] { static_cast<void>(session.stream->await(kEnded, Deadline::in_ms(200))); });
  EXPECT_EQ(session.peer.next_command(), (ControlMessage{.opcode = Opcode::get_server_feature, .select = 9}));
  serving.join();
}

struct Offence {
  const char* name;
  CloseReason reason;
  void (*commit)(Session&);
};
void PrintTo(const Offence& offence, std::ostream* out) { *out << offence.name; }

class Offences : public testing::TestWithParam<Offence> {};

TEST_P(Offences, end_that_stream_and_no_other) {
  const World world(small());
  const test::Pair other(world);
  Session session(world);
  GetParam().commit(session);
  EXPECT_EQ(session.ended(), GetParam().reason) << session.stream->words();
  EXPECT_THAT(session.stream->words(), testing::HasSubstr(std::string(name_of(GetParam().reason))));
  EXPECT_EQ(world.listener->tally().closes.counts()[static_cast<size_t>(GetParam().reason)], 1U);
  std::array<std::byte, 64> room{};
  auto read = session.stream->read(room, soon());
  if (read) {
    read = session.stream->read(room, soon());  // what came before it was all right
  }
  EXPECT_EQ(read.error().value, EPROTO);
  EXPECT_TRUE(session.peer.is_ended());
  ASSERT_EQ(test::write(*other.client, patterned(9)), 9U);
  EXPECT_EQ(test::read_all(*other.server, 9), patterned(9));
}

void send_bytes(Session& session, size_t count) { session.peer.send(std::vector<std::byte>(count, std::byte{0})); }

const Offence kOffences[] = {
    {"short_command", CloseReason::bad_command_length, [](Session& s) { send_bytes(s, 31); }},
    {"long_command", CloseReason::bad_command_length, [](Session& s) { send_bytes(s, 33); }},
    {"empty_command", CloseReason::bad_command_length, [](Session& s) { send_bytes(s, 0); }},
    {"opcode_4", CloseReason::bad_opcode,
     [](Session& s) {
       ControlBytes bytes{};
       bytes[1] = std::byte{4};
       s.peer.send(bytes);
     }},
    {"no_length", CloseReason::bad_rx_length, [](Session& s) { s.peer.announce(0x1000, 0); }},
    {"wrapping_address", CloseReason::bad_rx_length,
     [](Session& s) { s.peer.announce(0xfffffffffffff000, 1U << 20U); }},
    {"beyond_the_cap", CloseReason::bad_rx_length, [](Session& s) { s.peer.announce(0x1000, (16U << 20U) + 1); }},
    {"another_length", CloseReason::rx_length_changed,
     [](Session& s) {
       s.peer.announce(s.peer.address(), 4096);
       s.peer.announce(s.peer.address(), 8192);
     }},
    {"overrun", CloseReason::imm_overrun, [](Session& s) { s.peer.write(s.where, 0, patterned(1), 0x00010001); }},
    {"wrapping_sum", CloseReason::imm_overrun,
     [](Session& s) {
       s.peer.write(s.where, 0, patterned(16), 16);
       s.peer.write(s.where, 16, patterned(1), 0xfffffff8);
     }},
    {"underrun", CloseReason::imm_underrun, [](Session& s) { s.peer.write(s.where, 0, patterned(9), 8); }},
    {"choice_of_what_was_not_offered", CloseReason::feature,
     [](Session& s) { s.peer.send(ControlMessage{.opcode = Opcode::set_client_feature, .features = 2}.emit()); }},
};

INSTANTIATE_TEST_SUITE_P(Streams, Offences, testing::ValuesIn(kOffences), testing::PrintToStringParamName());

TEST(RawPeer, that_overruns_before_the_announcement_is_put_off_until_the_server_looks) {
  const World world(small());
  Session session(world);
  // It filled the buffer and goes on without waiting for the next announcement.
  const auto full = patterned(16384);
  for (uint32_t i = 0; i < 4; ++i) {
    session.peer.write(session.where, i * 16384, full, 16384);
  }
  session.peer.write(session.where, 0, patterned(1), 1);
  EXPECT_EQ(session.ended(), CloseReason::imm_overrun);
}

}  // namespace
}  // namespace ringbolt::stream
