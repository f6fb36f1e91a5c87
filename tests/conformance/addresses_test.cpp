// Addresses of an interface that come and go while its device is open. In a network namespace of the test's own.
#include <cstdlib>
#include <cstring>
#include <string>

#include "deadline.h"
#include "endpoint.h"

namespace ringbolt::conformance {
namespace {

ibv_gid mapped(uint8_t last) {
  ibv_gid gid{};
  const uint8_t tail[] = {0xff, 0xff, 10, 99, 7, last};
  std::memcpy(gid.raw + 10, tail, sizeof tail);
  return gid;
}

ibv_gid gid_at(const Device& device, int index) {
  ibv_gid gid{};
  EXPECT_EQ(ibv_query_gid(device.context.get(), 1, index, &gid), 0);
  return gid;
}

bool is(const ibv_gid& a, const ibv_gid& b) { return std::memcmp(a.raw, b.raw, sizeof a.raw) == 0; }

int index_of(const Device& device, const ibv_gid& gid) {
  for (int i = 0; i < device.port.gid_tbl_len; ++i) {
    if (is(gid_at(device, i), gid)) {
      return i;
    }
  }
  return -1;
}

/// Waits for news until the address is there, or no longer.
void await(const Device& device, const ibv_gid& gid, bool is_there) {
  while ((index_of(device, gid) >= 0) != is_there) {
    const ibv_async_event event = wait_async_event(device);
    EXPECT_EQ(event.event_type, IBV_EVENT_GID_CHANGE);
    EXPECT_EQ(event.element.port_num, 1);
  }
}

/// The addresses of an interface go and come one by one, each with an event of its own.
void await_port_event(const Device& device, ibv_event_type wanted) {
  ibv_event_type seen = IBV_EVENT_GID_CHANGE;
  while (seen == IBV_EVENT_GID_CHANGE) {
    seen = wait_async_event(device).event_type;
  }
  EXPECT_EQ(seen, wanted);
}

ibv_port_state state_of(const Device& device) {
  ibv_port_attr port{};
  EXPECT_EQ(ibv_query_port(device.context.get(), 1, &port), 0);
  return port.state;
}

void ip(const std::string& words) { ASSERT_EQ(std::system(("ip " + words).c_str()), 0) << words; }

class Addresses : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("RINGBOLT_NETDEVS") == nullptr) {
      GTEST_SKIP() << "no device on an interface";
    }
  }
};

TEST_F(Addresses, come_and_go_while_a_device_is_open) {
  const Device device = open_device();
  const ibv_gid first = gid_at(device, 0);
  const ibv_gid second = gid_at(device, 1);
  ip("addr add 10.99.7.1/32 dev lo");
  await(device, mapped(1), true);
  const int index = index_of(device, mapped(1));
  ip("addr add 10.99.7.2/32 dev lo");
  await(device, mapped(2), true);
  const int later = index_of(device, mapped(2));
  ip("addr del 10.99.7.1/32 dev lo");
  await(device, mapped(1), false);
  EXPECT_TRUE(is(gid_at(device, index), ibv_gid{}));  // a hole, and nobody else moves
  EXPECT_EQ(index_of(device, mapped(2)), later);
  EXPECT_TRUE(is(gid_at(device, 0), first));
  EXPECT_TRUE(is(gid_at(device, 1), second));
  ip("addr add 10.99.7.3/32 dev lo");
  await(device, mapped(3), true);
  EXPECT_EQ(index_of(device, mapped(3)), index);
  ip("addr del 10.99.7.2/32 dev lo");
  ip("addr del 10.99.7.3/32 dev lo");
  await(device, mapped(3), false);
}

TEST_F(Addresses, that_have_come_can_be_connected_from) {
  Device device = open_device();
  ip("addr add 10.99.7.4/32 dev lo");
  await(device, mapped(4), true);
  device.gid_index = static_cast<uint8_t>(index_of(device, mapped(4)));
  device.gid = mapped(4);
  Endpoint near(device, QpOptions());
  Endpoint far(device, QpOptions());
  connect(near, far);
  Region memory(near.pd(), 64);
  Region target(far.pd(), 64);
  ASSERT_EQ(post_recv(far.qp(), 1, {target.sge(0, 64)}), 0);
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {memory.sge(0, 64)}).post(near.qp()), 0);
  expect_success(wait_completion(far.recv_cq()), 1, IBV_WC_RECV);
  expect_success(wait_completion(near.send_cq()), 1, IBV_WC_SEND);
  ip("addr del 10.99.7.4/32 dev lo");
  await(device, mapped(4), false);
}

TEST_F(Addresses, of_an_interface_that_goes_down_and_up) {
  const Device device = open_device();
  const ibv_gid link_local = gid_at(device, 0);
  const ibv_gid ipv4 = gid_at(device, 1);
  ip("link set lo down");
  await_port_event(device, IBV_EVENT_PORT_ERR);
  EXPECT_EQ(state_of(device), IBV_PORT_DOWN);
  await(device, link_local, false);
  ip("link set lo up");
  await_port_event(device, IBV_EVENT_PORT_ACTIVE);
  EXPECT_EQ(state_of(device), IBV_PORT_ACTIVE);
  ip("addr add fe80::1/64 dev lo nodad");
  await(device, link_local, true);
  EXPECT_TRUE(is(gid_at(device, 1), ipv4));  // it stayed with its interface, and where it was
}

}  // namespace
}  // namespace ringbolt::conformance
