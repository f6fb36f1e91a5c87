#include "rsocket/connection.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "rsocket/fake_rdma_test_support.h"
#include "rsocket/work_id.h"

namespace ringbolt::rsocket {
namespace {

using test::FakeRdma;
using test::Sent;

constexpr uint64_t kPeerRing = 0x100000;
constexpr uint64_t kPeerTable = 0x200000;

/// A connection on a fake device, whose peer is the test: it looks at the work requests, and says what completes.
class ConnectionTest : public testing::Test {
 protected:
  static Settings settings() {
    Settings settings;
    settings.send_bytes = 4096;
    settings.receive_bytes = 4096;
    settings.send_depth = 16;
    settings.receive_depth = 16;
    settings.inline_bytes = 64;
    settings.iomap_entries = 2;
    return settings;
  }
  static ConnectionData peer() {
    ConnectionData data;
    data.credits = 8;
    data.iomap_entries = 2;
    data.targets = {kPeerTable, 0x22, 2};
    data.ring = {kPeerRing, 0x11, 1000};
    return data;
  }
  /// The peer agrees, and the first look has granted it our second half.
  void join() {
    ASSERT_TRUE(connection_.join(peer()));
    connection_.progress();
    ASSERT_EQ(rdma_.sent.size(), 1U);
    rdma_.complete(rdma_.sent[0]);
    connection_.progress();
    rdma_.sent.clear();
  }
  uint32_t send(std::string_view text) {
    std::string copy(text);
    const iovec piece{copy.data(), copy.size()};
    auto cursor = IoCursor::over(&piece, 1).value();
    const base::LockGuard lock(lock_);
    return connection_.send(cursor, static_cast<uint32_t>(copy.size()), lock_);
  }
  std::string receive(size_t room, bool peek = false) {
    std::string text(room, '.');
    const iovec piece{text.data(), text.size()};
    auto cursor = IoCursor::over(&piece, 1).value();
    const base::LockGuard lock(lock_);
    text.resize(connection_.receive(cursor, peek, lock_));
    return text;
  }
  /// The peer writes `text` at `offset` of our ring, and says so.
  void arrive(std::string_view text, uint32_t offset) {
    std::memcpy(connection_.endpoint().ring().data() + offset, text.data(), text.size());
    rdma_.bring(static_cast<uint32_t>(text.size()), static_cast<uint32_t>(text.size()));
    connection_.progress();
  }

  test::FakeId fake_;
  FakeRdma& rdma_ = FakeRdma::get();
  Connection connection_{&fake_.id, settings()};
  base::Mutex lock_;
};

TEST_F(ConnectionTest, tells_the_peer_of_its_memory) {
  const ConnectionData data = connection_.local_data();
  EXPECT_EQ(data.credits, 16);
  EXPECT_EQ(data.iomap_entries, 2U);
  EXPECT_EQ(data.targets.address, connection_.endpoint().table().address());
  EXPECT_EQ(data.targets.length, 2U);
  EXPECT_EQ(data.ring.address, connection_.endpoint().ring().address());
  EXPECT_EQ(data.ring.length, 2048U) << "the first half";
  EXPECT_EQ(rdma_.receives, 16U + 16U) << "the peer's credits, and spare ones for its control messages";
}

TEST_F(ConnectionTest, sends_nothing_before_the_peer_has_joined) {
  EXPECT_FALSE(connection_.can_send(1));
  EXPECT_FALSE(connection_.can_send_direct(1));
  EXPECT_FALSE(connection_.progress());
  EXPECT_TRUE(rdma_.sent.empty()) << "no grant either: nobody knows where to";
  ConnectionData wrong = peer();
  wrong.targets.length = 0;
  EXPECT_EQ(connection_.join(wrong).error().value, EPROTO);
  EXPECT_FALSE(connection_.can_send(1));
}

/// A WRITE into the second entry of the peer's table; immediate data: op 4, and the number of the last message.
TEST_F(ConnectionTest, grants_its_second_half_at_once) {
  ASSERT_TRUE(connection_.join(peer()));
  connection_.progress();
  ASSERT_EQ(rdma_.sent.size(), 1U);
  const Sent& grant = rdma_.sent[0];
  EXPECT_EQ(grant.opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
  EXPECT_EQ(grant.immediate, 4U << 29U | 16U);
  EXPECT_EQ(grant.address, kPeerTable + 16);
  EXPECT_EQ(grant.key, 0x22U);
  EXPECT_TRUE(grant.is_inline);
  const auto expected =
      emit_target({connection_.endpoint().ring().address() + 2048, connection_.endpoint().ring().rkey(), 2048}, false);
  EXPECT_EQ(std::memcmp(grant.bytes.data(), expected.data(), expected.size()), 0);
  EXPECT_EQ(grant.bytes.size(), 16U);
}

TEST_F(ConnectionTest, sends_short_messages_inline_and_long_ones_from_its_buffer) {
  join();
  EXPECT_EQ(send("hello"), 5U);
  const std::string longer(100, 'x');
  EXPECT_EQ(send(longer), 100U);
  ASSERT_EQ(rdma_.sent.size(), 2U);
  EXPECT_EQ(rdma_.sent[0].opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
  EXPECT_EQ(rdma_.sent[0].immediate, 5U) << "op 0, and the length";
  EXPECT_EQ(rdma_.sent[0].address, kPeerRing);
  EXPECT_EQ(rdma_.sent[0].key, 0x11U);
  EXPECT_EQ(rdma_.sent[0].bytes, "hello");
  EXPECT_TRUE(rdma_.sent[0].is_inline);
  EXPECT_EQ(rdma_.sent[1].address, kPeerRing + 5);
  EXPECT_EQ(rdma_.sent[1].bytes, longer);
  EXPECT_FALSE(rdma_.sent[1].is_inline);
  EXPECT_EQ(WorkId::parse(rdma_.sent[1].wr_id).staged_bytes, 100U);
  EXPECT_FALSE(connection_.is_idle());
  rdma_.complete(rdma_.sent[0]);
  rdma_.complete(rdma_.sent[1]);
  EXPECT_TRUE(connection_.progress());
  EXPECT_TRUE(connection_.is_idle());
}

TEST_F(ConnectionTest, goes_on_when_the_peer_grants_more) {
  join();
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(connection_.can_send(1)) << i;
    send("x");
  }
  EXPECT_FALSE(connection_.can_send(1)) << "its credits are spent";
  rdma_.bring(4U << 29U | 9U, 0);
  connection_.progress();
  EXPECT_TRUE(connection_.can_send(1));
  EXPECT_TRUE(connection_.has_heard_from_peer());
}

TEST_F(ConnectionTest, gives_out_what_came_in) {
  join();
  arrive("hello ", 0);
  arrive("world", 6);
  EXPECT_EQ(connection_.readable(), 11U);
  EXPECT_EQ(receive(8, true), "hello wo") << "and leaves it";
  EXPECT_EQ(receive(4), "hell");
  EXPECT_EQ(receive(100), "o world");
  EXPECT_EQ(receive(100), "");
  EXPECT_EQ(rdma_.receives, 32U + 2U) << "those that were taken are posted again";
}

TEST_F(ConnectionTest, grants_a_half_again_when_it_was_read) {
  join();
  arrive(std::string(2048, 'a'), 0);
  EXPECT_TRUE(rdma_.sent.empty());
  EXPECT_EQ(receive(2048).size(), 2048U);
  ASSERT_EQ(rdma_.sent.size(), 1U);
  EXPECT_EQ(rdma_.sent[0].immediate, 4U << 29U | 17U);
  EXPECT_EQ(rdma_.sent[0].address, kPeerTable) << "the entries in turn";
}

TEST_F(ConnectionTest, breaks_off_with_a_peer_that_writes_too_much) {
  join();
  rdma_.bring(5000, 5000);
  connection_.progress();
  EXPECT_EQ(connection_.error(), EPROTO);
  EXPECT_FALSE(connection_.can_send(1));
}

/// Control messages: op 7; 2 says that no more data comes, 0 that none is taken either.
TEST_F(ConnectionTest, hears_the_peers_goodbye) {
  join();
  rdma_.bring(7U << 29U | 2U, 0);
  connection_.progress();
  EXPECT_TRUE(connection_.peer_has_shut_down());
  EXPECT_FALSE(connection_.peer_has_disconnected());
  EXPECT_TRUE(connection_.can_send(1));
  rdma_.bring(7U << 29U | 0U, 0);
  connection_.progress();
  EXPECT_TRUE(connection_.peer_has_disconnected());
  EXPECT_FALSE(connection_.can_send(1));
}

TEST_F(ConnectionTest, passes_over_a_peers_keepalive_and_what_is_reserved) {
  join();
  rdma_.bring(7U << 29U | 1U, 0);
  rdma_.bring(3U << 29U | 1U, 0);
  EXPECT_TRUE(connection_.progress());
  EXPECT_EQ(connection_.error(), 0);
  EXPECT_FALSE(connection_.peer_has_shut_down());
  EXPECT_EQ(connection_.readable(), 0U);
}

TEST_F(ConnectionTest, says_goodbye_by_a_message_and_asks_by_a_write_of_nothing) {
  join();
  connection_.send_control(Control::shutdown);
  connection_.send_control(Control::keepalive);
  ASSERT_EQ(rdma_.sent.size(), 2U);
  EXPECT_EQ(rdma_.sent[0].opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
  EXPECT_EQ(rdma_.sent[0].immediate, 7U << 29U | 2U);
  EXPECT_EQ(rdma_.sent[1].opcode, IBV_WR_RDMA_WRITE) << "which takes no receive";
  EXPECT_EQ(rdma_.sent[1].bytes, "");
}

TEST_F(ConnectionTest, fails_with_a_request_unless_the_peer_has_gone_in_order) {
  join();
  send("x");
  rdma_.complete(rdma_.sent[0], IBV_WC_RETRY_EXC_ERR);
  connection_.progress();
  EXPECT_EQ(connection_.error(), ECONNRESET);
}

TEST_F(ConnectionTest, does_not_fail_behind_a_goodbye) {
  join();
  send("x");
  rdma_.bring(7U << 29U | 0U, 0);
  rdma_.complete(rdma_.sent[0], IBV_WC_WR_FLUSH_ERR);
  connection_.progress();
  EXPECT_EQ(connection_.error(), 0);
}

TEST_F(ConnectionTest, gives_back_what_the_device_does_not_take) {
  join();
  rdma_.refused = "post_send";
  rdma_.error = ENOMEM;
  send("x");
  EXPECT_EQ(connection_.error(), ENOMEM);
  EXPECT_TRUE(connection_.is_idle());
}

TEST_F(ConnectionTest, makes_mappings_known_behind_the_peers_targets) {
  join();
  ASSERT_TRUE(connection_.can_send_mapping());
  EXPECT_EQ(connection_.peer_mappings(), 2U);
  const RemoteBlock block{0x9000, 0x44, 300};
  connection_.send_mapping(1, 0x5000, block);
  ASSERT_EQ(rdma_.sent.size(), 1U);
  EXPECT_EQ(rdma_.sent[0].immediate, 6U << 29U | 1U);
  EXPECT_EQ(rdma_.sent[0].address, kPeerTable + 2 * 16 + 24);
  EXPECT_EQ(rdma_.sent[0].key, 0x22U);
  const auto expected = emit_iomap(0x5000, block, false);
  ASSERT_EQ(rdma_.sent[0].bytes.size(), expected.size());
  EXPECT_EQ(std::memcmp(rdma_.sent[0].bytes.data(), expected.data(), expected.size()), 0);
}

TEST(Endpoint, of_a_device_without_so_much_inline_has_none) {
  test::FakeId fake;
  FakeRdma::get().inline_bytes = 32;
  Settings settings;
  settings.inline_bytes = 64;
  const Connection connection(&fake.id, settings);
  EXPECT_EQ(connection.settings().inline_bytes, 0U);
}

/// Sixteen receives are kept for what carries no data, and the completion queue is for both queues.
TEST(Endpoint, of_a_device_too_shallow_for_data_is_refused) {
  constexpr int kDeep = 1000;
  for (const auto& [max_qp_wr, max_cqe, depth] :
       {std::tuple{16, kDeep, 0U}, {0, kDeep, 0U}, {kDeep, 33, 0U}, {17, kDeep, 1U}, {kDeep, 34, 1U}}) {
    test::FakeId fake;
    FakeRdma::get().max_qp_wr = max_qp_wr;
    FakeRdma::get().max_cqe = max_cqe;
    uint32_t receive_depth = 0;
    int error = 0;
    try {
      receive_depth = Connection(&fake.id, Settings{}).settings().receive_depth;
    } catch (const base::Error& refusal) {
      error = refusal.errno_value();
    }
    EXPECT_EQ(receive_depth, depth) << max_qp_wr << ", " << max_cqe;
    EXPECT_EQ(error, depth == 0 ? ENOMEM : 0) << max_qp_wr << ", " << max_cqe;
  }
}

TEST(Endpoint, leaves_nothing_behind_where_memory_can_not_be_registered) {
  test::FakeId fake;
  FakeRdma::get().refused = "reg_mr";
  FakeRdma::get().error = ENOMEM;
  EXPECT_THROW(Connection(&fake.id, Settings{}), base::Error);
  EXPECT_EQ(fake.id.qp, nullptr);
  EXPECT_EQ(FakeRdma::get().regions, 0);
}

}  // namespace
}  // namespace ringbolt::rsocket
