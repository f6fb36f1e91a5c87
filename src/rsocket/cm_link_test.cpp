#include "rsocket/cm_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>

#include "rsocket/fake_rdma_test_support.h"
#include "rsocket/mappings.h"
#include "rsocket/request_queue.h"

namespace ringbolt::rsocket {
namespace {

using test::FakeRdma;
using Calls = std::vector<std::string>;

class CmLinkTest : public testing::Test {
 protected:
  CmLinkTest() { FakeRdma::get() = {}; }
  ~CmLinkTest() override {
    EXPECT_EQ(rdma_.ids, 0);
    EXPECT_EQ(rdma_.channels, 0);
  }
  static CmLink made() { return std::move(*CmLink::create(RDMA_PS_TCP)); }
  /// The calls since the last look.
  Calls calls() { return std::exchange(rdma_.calls, {}); }
  CmEvent request(const void* data, size_t bytes) {
    ++rdma_.ids;
    auto* event = new rdma_cm_event{};
    event->event = RDMA_CM_EVENT_CONNECT_REQUEST;
    event->id = new rdma_cm_id{};
    event->param.conn.private_data = data;
    event->param.conn.private_data_len = static_cast<uint8_t>(bytes);
    event->param.conn.initiator_depth = 3;
    return CmEvent(event);
  }

  FakeRdma& rdma_ = FakeRdma::get();
};

TEST_F(CmLinkTest, has_a_channel_that_does_not_block) {
  const CmLink link = made();
  EXPECT_NE(::fcntl(link.fd(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(link.next(), nullptr);
  rdma_cm_event event{};
  event.event = RDMA_CM_EVENT_ESTABLISHED;
  rdma_.events.push_back(event);
  EXPECT_EQ(link.next()->event, RDMA_CM_EVENT_ESTABLISHED);
}

TEST_F(CmLinkTest, answers_the_errno_of_a_refused_call) {
  const CmLink link = made();
  const std::array<std::byte, 4> data{};
  const auto refused = [&](const char* name, auto call) {
    rdma_.refused = name;
    rdma_.error = EACCES;
    EXPECT_EQ(call(), EACCES) << name;
    rdma_.error = 0;
    EXPECT_NE(call(), 0) << name << ": a call that fails without an errno fails all the same";
    rdma_.refused.clear();
    EXPECT_EQ(call(), 0) << name;
  };
  refused("bind_addr", [&] { return link.bind({}); });
  refused("listen", [&] { return link.listen(5); });
  refused("set_option", [&] { return link.set_flag(RDMA_OPTION_ID_REUSEADDR, 1); });
  refused("resolve_addr", [&] { return link.resolve_address({}, 10); });
  refused("resolve_route", [&] { return link.resolve_route({}, 10); });
  refused("connect", [&] { return link.connect(data); });
  refused("accept", [&] { return link.accept({}, data); });
}

TEST_F(CmLinkTest, takes_a_route_that_the_program_chose) {
  const CmLink link = made();
  calls();
  const std::array<ibv_path_data, 1> chosen{};
  EXPECT_EQ(link.resolve_route(chosen, 10), 0);
  EXPECT_EQ(calls(), Calls{"set_path"});
  rdma_.refused = "set_path";
  EXPECT_EQ(link.resolve_route(chosen, 10), 0);
  EXPECT_EQ(calls(), (Calls{"set_path", "resolve_route"})) << "the connection manager does not take it";
}

/// Receives are always posted, and a peer that is slow to do so is waited for: RNR retries without end (7).
TEST_F(CmLinkTest, connects_and_accepts_with_data_and_retries) {
  const CmLink link = made();
  const std::string text = "who we are";
  const auto data = std::as_bytes(std::span(text));
  EXPECT_EQ(link.connect(data), 0);
  EXPECT_EQ(rdma_.last_data, text);
  EXPECT_EQ(rdma_.last_param.retry_count, 7);
  EXPECT_EQ(rdma_.last_param.rnr_retry_count, 7);
  rdma_conn_param request{};
  request.initiator_depth = 3;
  EXPECT_EQ(link.accept(request, data.first(3)), 0);
  EXPECT_EQ(rdma_.last_data, "who");
  EXPECT_EQ(rdma_.last_param.initiator_depth, 3) << "as the peer asked";
  EXPECT_EQ(rdma_.last_param.rnr_retry_count, 7);
}

TEST_F(CmLinkTest, destroys_a_request_that_it_can_not_adopt) {
  for (const char* call : {"create_event_channel", "migrate_id"}) {
    FakeRdma::get() = {};
    rdma_.refused = call;
    rdma_.ids = 1;
    EXPECT_FALSE(CmLink::adopt(new rdma_cm_id{})) << call;
    EXPECT_EQ(rdma_.ids, 0) << call;
    rdma_.channels = 0;
  }
}

TEST(ErrorOf, an_event_is_an_errno) {
  rdma_cm_event event{};
  const auto error = [&](rdma_cm_event_type type, int status) {
    event.event = type;
    event.status = status;
    return error_of(event);
  };
  EXPECT_EQ(error(RDMA_CM_EVENT_REJECTED, 28), ECONNREFUSED);
  EXPECT_EQ(error(RDMA_CM_EVENT_DISCONNECTED, 0), ECONNRESET);
  EXPECT_EQ(error(RDMA_CM_EVENT_DEVICE_REMOVAL, 0), ENODEV);
  EXPECT_EQ(error(RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH), EHOSTUNREACH);
  EXPECT_EQ(error(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT), ETIMEDOUT);
  EXPECT_EQ(error(RDMA_CM_EVENT_UNREACHABLE, 3), ETIMEDOUT) << "a code of the wire protocol";
  EXPECT_EQ(error(RDMA_CM_EVENT_CONNECT_ERROR, 3), ECONNABORTED);
}

TEST_F(CmLinkTest, requests_come_out_in_order) {
  RequestQueue requests;
  EXPECT_TRUE(requests.is_empty());
  for (const uint16_t credits : {uint16_t{11}, uint16_t{12}}) {
    ConnectionData peer;
    peer.credits = credits;
    const auto data = peer.emit();
    requests.take(request(data.data(), data.size()), true);
  }
  const Request first = requests.pop();
  EXPECT_EQ(first.peer.credits, 11);
  EXPECT_EQ(first.param.initiator_depth, 3);
  EXPECT_EQ(first.param.private_data, nullptr) << "it went with the event";
  EXPECT_EQ(requests.pop().peer.credits, 12);
  EXPECT_TRUE(requests.is_empty());
}

/// rdma_cm(7): an id neither moves nor goes before its events are acknowledged.
TEST_F(CmLinkTest, requests_are_acknowledged_before_they_move) {
  const auto data = ConnectionData().emit();
  RequestQueue requests;
  requests.take(request(data.data(), data.size()), true);
  EXPECT_EQ(calls(), (Calls{"ack_cm_event", "create_event_channel", "migrate_id"}));
}

TEST_F(CmLinkTest, requests_of_others_and_behind_the_end_are_rejected) {
  const auto data = ConnectionData().emit();
  RequestQueue requests;
  requests.take(request(data.data(), data.size() - 1), true);
  EXPECT_EQ(calls().back(), "reject");
  requests.take(request(nullptr, 40), true);
  EXPECT_EQ(calls().back(), "reject");
  requests.take(request(data.data(), data.size()), false);
  EXPECT_EQ(calls().back(), "reject");
  EXPECT_TRUE(requests.is_empty());
  EXPECT_EQ(rdma_.ids, 0);
}

class MappingsTest : public testing::Test {
 protected:
  int add(size_t place, size_t bytes, bool is_remote, uint32_t peer_entries = 2) {
    return mappings_.add(&fake_.pd, memory_.data() + place, bytes, is_remote, 0x1000 * (place + 1), peer_entries);
  }
  test::FakeId fake_;
  std::array<std::byte, 64> memory_{};
  Mappings mappings_;
};

TEST_F(MappingsTest, are_told_to_the_peer_that_may_write_there) {
  ASSERT_EQ(add(0, 16, true), 0);
  EXPECT_EQ(FakeRdma::get().access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ASSERT_NE(mappings_.news(), nullptr);
  EXPECT_EQ(mappings_.news()->index, 0U);
  EXPECT_EQ(mappings_.news()->offset, 0x1000U);
  EXPECT_EQ(mappings_.news()->block, (RemoteBlock{reinterpret_cast<uint64_t>(memory_.data()), 1, 16}));
  mappings_.told();
  EXPECT_EQ(mappings_.news(), nullptr);
}

TEST_F(MappingsTest, of_our_own_are_not_told) {
  ASSERT_EQ(add(0, 16, false, 0), 0);
  EXPECT_EQ(FakeRdma::get().access, IBV_ACCESS_LOCAL_WRITE);
  EXPECT_EQ(mappings_.news(), nullptr);
}

TEST_F(MappingsTest, are_as_many_as_the_peer_keeps_and_their_places_are_used_again) {
  ASSERT_EQ(add(0, 8, true), 0);
  ASSERT_EQ(add(8, 8, true), 0);
  EXPECT_EQ(add(16, 8, true), ENOMEM);
  EXPECT_FALSE(mappings_.remove(memory_.data(), 9)) << "of another length";
  EXPECT_TRUE(mappings_.remove(memory_.data(), 8));
  EXPECT_EQ(mappings_.news()->index, 1U) << "what is gone is not told any more";
  mappings_.told();
  ASSERT_EQ(add(16, 8, true), 0);
  EXPECT_EQ(mappings_.news()->index, 0U);
}

TEST_F(MappingsTest, that_can_not_be_registered_or_told_are_refused) {
  EXPECT_EQ(add(0, size_t{1} << 32U, true), EINVAL) << "an entry has 32 bits for the length";
  FakeRdma::get().refused = "reg_mr";
  FakeRdma::get().error = EFAULT;
  EXPECT_EQ(add(0, 8, true), EFAULT);
  EXPECT_EQ(mappings_.news(), nullptr);
  EXPECT_FALSE(mappings_.remove(memory_.data(), 8));
}

}  // namespace
}  // namespace ringbolt::rsocket
