// Identifiers and channels: addresses, options, moving, destroying.

#include <fcntl.h>
#include <rdma/rdma_verbs.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "support.h"

namespace ringbolt::rdmacm_test {
namespace {

TEST(Address, belongs_to_one_listener) {
  Channel channel;
  rdma_cm_id* first = listen(channel);
  const uint16_t port = ntohs(rdma_get_src_port(first));
  rdma_cm_id* second = new_id(channel);
  sockaddr_in same = address(port);
  EXPECT_EQ(rdma_bind_addr(second, c(same)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  sockaddr_in any = address(port, INADDR_ANY);
  EXPECT_EQ(rdma_bind_addr(second, c(any)), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
  discard(first);
  EXPECT_EQ(rdma_bind_addr(second, c(any)), 0) << std::strerror(errno);
  EXPECT_EQ(second->verbs, nullptr);
  discard(second);
}

TEST(Address, wildcards_of_both_families_share_a_port_only_if_told) {
  Channel channel;
  rdma_cm_id* four = new_id(channel);
  rdma_cm_id* six = new_id(channel);
  sockaddr_in any = address(0, INADDR_ANY);
  ASSERT_EQ(rdma_bind_addr(four, c(any)), 0);
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = rdma_get_src_port(four);
  EXPECT_EQ(rdma_bind_addr(six, reinterpret_cast<sockaddr*>(&any6)), -1);
  int yes = 1;
  ASSERT_EQ(rdma_set_option(six, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, sizeof yes), 0);
  EXPECT_EQ(rdma_bind_addr(six, reinterpret_cast<sockaddr*>(&any6)), 0) << std::strerror(errno);
  EXPECT_EQ(rdma_listen(four, 0), 0);
  EXPECT_EQ(rdma_listen(six, 0), 0);
  discard(six);
  discard(four);
}

TEST(Address, of_another_host_has_no_device) {
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  sockaddr_in foreign = address(0, 0xc0000201);  // 192.0.2.1, for documentation
  EXPECT_EQ(rdma_bind_addr(id, c(foreign)), -1);
  EXPECT_EQ(errno, ENODEV);
  sockaddr_in6 link_local{};
  link_local.sin6_family = AF_INET6;
  link_local.sin6_addr.s6_addr[0] = 0xfe;
  link_local.sin6_addr.s6_addr[1] = 0x80;
  EXPECT_EQ(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&link_local)), -1);
  EXPECT_EQ(errno, EINVAL);
  discard(id);
}

TEST(Address, steps_out_of_order_are_refused) {
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  rdma_conn_param param = parameters();
  EXPECT_EQ(rdma_resolve_route(id, 100), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_connect(id, &param), -1);
  EXPECT_EQ(rdma_accept(id, &param), -1);
  EXPECT_EQ(rdma_disconnect(id), -1);
  rdma_cm_id* other = nullptr;
  EXPECT_EQ(rdma_get_request(id, &other), -1);
  EXPECT_EQ(rdma_create_id(channel.get(), &other, nullptr, static_cast<rdma_port_space>(7)), -1);
  discard(id);
}

TEST(Options, are_checked) {
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  uint8_t byte = 32;
  int number = 1;
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, sizeof byte), 0);
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &number, sizeof number), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, sizeof byte), -1);
  byte = 14;
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, sizeof byte), 0);
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, 77, &byte, sizeof byte), -1);
  EXPECT_EQ(errno, ENOSYS);
  discard(id);
}

TEST(Refusals, say_why) {
  Channel channel;
  rdma_cm_id* id = new_id(channel, RDMA_PS_UDP);
  sockaddr_in group = address(0, 0xe0000001);
  EXPECT_EQ(rdma_join_multicast(id, c(group), nullptr), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  rdma_addrinfo* info = nullptr;
  EXPECT_EQ(rdma_getaddrinfo(nullptr, nullptr, nullptr, &info), -1);
  EXPECT_EQ(errno, EINVAL);
  discard(id);
}

TEST(Events, wake_once_each_and_never_block_when_told_not_to) {
  Channel channel;
  ASSERT_EQ(fcntl(channel.get()->fd, F_SETFL, fcntl(channel.get()->fd, F_GETFL) | O_NONBLOCK), 0);
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(rdma_get_cm_event(channel.get(), &event), -1);
  EXPECT_EQ(errno, EAGAIN);
  const int poller = epoll_create1(EPOLL_CLOEXEC);
  epoll_event wanted{};
  wanted.events = EPOLLIN | EPOLLET;
  ASSERT_EQ(epoll_ctl(poller, EPOLL_CTL_ADD, channel.get()->fd, &wanted), 0);
  rdma_cm_id* ids[2] = {new_id(channel), new_id(channel)};
  for (rdma_cm_id* id : ids) {
    sockaddr_in to = address(9);
    ASSERT_EQ(rdma_resolve_addr(id, nullptr, c(to), 1000), 0);
    epoll_event got{};
    EXPECT_EQ(epoll_wait(poller, &got, 1, kLimitMs), 1);  // a new edge although nothing was taken
  }
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_TRUE(channel.is_readable());
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_FALSE(channel.is_readable());
  discard(ids[0]);
  discard(ids[1]);
  close(poller);
}

TEST(Events, undelivered_ones_go_with_their_identifier) {
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  sockaddr_in to = address(9);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, c(to), 1000), 0);
  EXPECT_TRUE(channel.is_readable());
  discard(id);
  EXPECT_FALSE(channel.is_readable());
}

TEST(Destroying, waits_for_acknowledgements) {
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  sockaddr_in to = address(9);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, c(to), 1000), 0);
  rdma_cm_event* event = channel.take();
  ASSERT_NE(event, nullptr);
  std::atomic<bool> is_destroyed{false};
  std::thread other([&] {
    rdma_destroy_id(id);
    is_destroyed = true;
  });
  EXPECT_FALSE(is_destroyed);
  EXPECT_EQ(rdma_ack_cm_event(event), 0);
  other.join();
  EXPECT_TRUE(is_destroyed);
}

TEST(Destroying, a_listener_refuses_what_nobody_fetched) {
  Channel servers;
  Channel clients;
  rdma_cm_id* listener = listen(servers);
  rdma_cm_id* client = routed(clients, ntohs(rdma_get_src_port(listener)));
  make_qp(client);
  rdma_conn_param param = parameters();
  ASSERT_EQ(rdma_connect(client, &param), 0);
  ASSERT_TRUE(servers.is_readable(kLimitMs));
  discard(listener);
  EXPECT_EQ(clients.expect(RDMA_CM_EVENT_REJECTED).status, 28);
  EXPECT_FALSE(servers.is_readable());
  discard(client);
}

TEST(Destroying, the_channel_before_its_identifiers_is_survived) {
  Channel clients;
  auto* servers = new Channel;
  rdma_cm_id* listener = listen(*servers);
  rdma_cm_id* client = routed(clients, ntohs(rdma_get_src_port(listener)));
  make_qp(client);
  rdma_conn_param param = parameters();
  ASSERT_EQ(rdma_connect(client, &param), 0);
  rdma_cm_id* server = servers->expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  make_qp(server);
  ASSERT_EQ(rdma_accept(server, &param), 0);
  clients.expect(RDMA_CM_EVENT_ESTABLISHED);
  discard(listener);
  delete servers;
  ASSERT_EQ(rdma_disconnect(server), 0);
  clients.expect(RDMA_CM_EVENT_DISCONNECTED);
  discard(server);
  discard(client);
}

/// Nobody will ever answer. IBTA volume 1, table 108: 28 is "consumer reject".
TEST(Destroying, the_channel_of_a_listener_has_its_requests_refused) {
  Channel clients;
  auto* servers = new Channel;
  rdma_cm_id* listener = listen(*servers);
  rdma_cm_id* client = routed(clients, ntohs(rdma_get_src_port(listener)));
  make_qp(client);
  delete servers;
  rdma_conn_param param = parameters();
  ASSERT_EQ(rdma_connect(client, &param), 0);
  EXPECT_EQ(clients.expect(RDMA_CM_EVENT_REJECTED).status, 28);
  discard(client);
  discard(listener);
}

TEST(Migrating, takes_queued_events_along) {
  Channel from;
  Channel to;
  rdma_cm_id* id = new_id(from);
  sockaddr_in target = address(9);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, c(target), 1000), 0);
  ASSERT_EQ(rdma_migrate_id(id, to.get()), 0);
  EXPECT_FALSE(from.is_readable());
  EXPECT_EQ(to.expect(RDMA_CM_EVENT_ADDR_RESOLVED).id, id);
  EXPECT_EQ(id->channel, to.get());
  discard(id);
}

TEST(Endpoint, serves_a_request_in_four_calls) {
  rdma_addrinfo hints{};
  hints.ai_port_space = RDMA_PS_TCP;
  hints.ai_flags = RAI_PASSIVE;
  rdma_addrinfo* info = nullptr;
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", "0", &hints, &info), 0);
  EXPECT_EQ(info->ai_qp_type, IBV_QPT_RC);
  EXPECT_NE(info->ai_src_addr, nullptr);
  ibv_qp_init_attr attributes{};
  attributes.cap = {4, 4, 1, 1, 16};
  attributes.sq_sig_all = 1;
  rdma_cm_id* listener = nullptr;
  ASSERT_EQ(rdma_create_ep(&listener, info, nullptr, &attributes), 0) << std::strerror(errno);
  rdma_freeaddrinfo(info);
  ASSERT_EQ(rdma_listen(listener, 4), 0);

  std::thread client([port = ntohs(rdma_get_src_port(listener))] {
    rdma_addrinfo wanted{};
    wanted.ai_port_space = RDMA_PS_TCP;
    rdma_addrinfo* there = nullptr;
    ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", std::to_string(port).c_str(), &wanted, &there), 0);
    ibv_qp_init_attr own{};
    own.cap = {4, 4, 1, 1, 16};
    own.sq_sig_all = 1;
    rdma_cm_id* id = nullptr;
    ASSERT_EQ(rdma_create_ep(&id, there, nullptr, &own), 0) << std::strerror(errno);
    rdma_freeaddrinfo(there);
    char text[16] = {};
    ibv_mr* memory = rdma_reg_msgs(id, text, sizeof text);
    ASSERT_NE(memory, nullptr);
    ASSERT_EQ(rdma_post_recv(id, nullptr, text, sizeof text, memory), 0);
    ASSERT_EQ(rdma_connect(id, nullptr), 0) << std::strerror(errno);
    ibv_wc done{};
    ASSERT_EQ(rdma_get_recv_comp(id, &done), 1);
    EXPECT_STREQ(text, "from the server");
    EXPECT_EQ(rdma_disconnect(id), 0);
    rdma_dereg_mr(memory);
    rdma_destroy_ep(id);
  });
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_get_request(listener, &id), 0) << std::strerror(errno);
  ASSERT_NE(id->qp, nullptr);
  EXPECT_EQ(id->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_EQ(rdma_accept(id, nullptr), 0) << std::strerror(errno);
  char text[16] = "from the server";
  ASSERT_EQ(rdma_post_send(id, nullptr, text, sizeof text, nullptr, IBV_SEND_INLINE), 0);
  ibv_wc done{};
  EXPECT_EQ(rdma_get_send_comp(id, &done), 1);
  EXPECT_EQ(rdma_disconnect(id), 0);
  client.join();
  rdma_destroy_ep(id);
  rdma_destroy_ep(listener);
}

TEST(Devices, are_listed) {
  int count = 0;
  ibv_context** list = rdma_get_devices(&count);
  ASSERT_NE(list, nullptr);
  EXPECT_GE(count, 1);
  EXPECT_EQ(list[count], nullptr);
  rdma_free_devices(list);
}

}  // namespace
}  // namespace ringbolt::rdmacm_test
