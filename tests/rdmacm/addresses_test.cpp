// Addresses of an interface that come and go while the library has its device open. In a network namespace of the
// test's own.
#include <cstdlib>
#include <string>

#include "support.h"

namespace ringbolt::rdmacm_test {
namespace {

constexpr uint32_t kSubnet = 0x0a630700;  // 10.99.7.0/24

void ip(const std::string& words) { ASSERT_EQ(std::system(("ip " + words).c_str()), 0) << words; }

/// 0 or the errno of binding a new identifier to 10.99.7.`last`.
int bind_to(const Channel& channel, uint8_t last) {
  rdma_cm_id* id = new_id(channel);
  sockaddr_in at = address(0, kSubnet | last);
  const int error = rdma_bind_addr(id, c(at)) == 0 ? 0 : errno;
  discard(id);
  return error;
}

/// The library hears of addresses from the kernel, a moment after whoever changed them.
void await_bind(const Channel& channel, uint8_t last, int wanted) {
  pollfd none{-1, 0, 0};
  for (int tries = 0; tries < kLimitMs && bind_to(channel, last) != wanted; ++tries) {
    poll(&none, 1, 1);
  }
  EXPECT_EQ(bind_to(channel, last), wanted);
}

class Addresses : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("RINGBOLT_NETDEVS") == nullptr) {
      GTEST_SKIP() << "no device on an interface";
    }
  }
};

TEST_F(Addresses, that_come_are_bound_listened_at_and_connected_to) {
  Channel channel;
  EXPECT_EQ(bind_to(channel, 1), ENODEV);
  ip("addr add 10.99.7.1/32 dev lo");
  await_bind(channel, 1, 0);

  rdma_cm_id* listener = new_id(channel);
  sockaddr_in at = address(0, kSubnet | 1);
  ASSERT_EQ(rdma_bind_addr(listener, c(at)), 0);
  ASSERT_EQ(rdma_listen(listener, 1), 0);
  Channel client_channel;
  rdma_cm_id* client = new_id(client_channel);
  at.sin_port = rdma_get_src_port(listener);
  ASSERT_EQ(rdma_resolve_addr(client, nullptr, c(at), kLimitMs), 0);
  client_channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(rdma_resolve_route(client, kLimitMs), 0);
  client_channel.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  rdma_conn_param param = parameters();
  ASSERT_EQ(rdma_connect(client, &param), 0);
  const Seen request = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request.id, nullptr);
  EXPECT_EQ(rdma_reject(request.id, nullptr, 0), 0);
  client_channel.expect(RDMA_CM_EVENT_REJECTED);
  discard(request.id);
  discard(client);
  discard(listener);

  ip("addr del 10.99.7.1/32 dev lo");
  await_bind(channel, 1, ENODEV);
}

TEST_F(Addresses, behind_a_hole_of_the_table_are_found) {
  Channel channel;
  EXPECT_EQ(bind_to(channel, 2), ENODEV);
  ip("addr add 10.99.7.2/32 dev lo");
  ip("addr add 10.99.7.3/32 dev lo");
  await_bind(channel, 3, 0);
  ip("addr del 10.99.7.2/32 dev lo");
  await_bind(channel, 2, ENODEV);
  EXPECT_EQ(bind_to(channel, 3), 0);
  ip("addr del 10.99.7.3/32 dev lo");
  await_bind(channel, 3, ENODEV);
}

}  // namespace
}  // namespace ringbolt::rdmacm_test
