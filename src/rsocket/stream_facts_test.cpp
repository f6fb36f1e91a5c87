#include "rsocket/stream_facts.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>

#include <array>

#include "rsocket/route.h"

namespace ringbolt::rsocket {
namespace {

int get(const StreamFacts& facts, int level, int name, const Options& options = {}) {
  int value = -1;
  socklen_t length = sizeof value;
  const auto result = get_stream_option(facts, options, level, name, &value, &length);
  EXPECT_TRUE(!result || length == sizeof value);
  return result ? value : -result.error().value;
}

ibv_sa_path_rec example_record() {
  ibv_sa_path_rec record{};
  record.sgid.raw[15] = 1;
  record.dgid.raw[15] = 2;
  record.flow_label = htonl(0x12345);
  record.hop_limit = 64;
  record.traffic_class = 9;
  record.reversible = 1;
  record.pkey = htons(0xffff);
  record.sl = 3;
  record.mtu = IBV_MTU_4096;
  record.rate = IBV_RATE_100_GBPS;
  record.packet_life_time = 18;
  record.preference = 7;
  return record;
}

TEST(StreamFacts, are_those_of_a_tcp_socket) {
  const rdma_route route{};
  EXPECT_EQ(get({AF_INET6, false, route}, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
  EXPECT_EQ(get({AF_INET6, false, route}, SOL_SOCKET, SO_DOMAIN), AF_INET6);
  EXPECT_EQ(get({AF_INET, false, route}, SOL_SOCKET, SO_DOMAIN), AF_INET);
  EXPECT_EQ(get({AF_INET, false, route}, SOL_SOCKET, SO_PROTOCOL), IPPROTO_TCP);
  EXPECT_EQ(get({AF_INET, false, route}, SOL_SOCKET, SO_ACCEPTCONN), 0);
  EXPECT_EQ(get({AF_INET, true, route}, SOL_SOCKET, SO_ACCEPTCONN), 1);
}

TEST(StreamFacts, leave_what_was_set_to_the_options) {
  const rdma_route route{};
  Options options;
  options.keepalive = 1;
  EXPECT_EQ(get({AF_INET, false, route}, SOL_SOCKET, SO_KEEPALIVE, options), 1);
  EXPECT_EQ(get({AF_INET, false, route}, SOL_SOCKET, SO_BINDTODEVICE), -ENOPROTOOPT);
}

/// The codes of the InfiniBand specification, 14.2.5.6: 1 is 256 bytes, 5 is 4096.
TEST(StreamFacts, segment_is_as_long_as_the_paths_mtu) {
  ibv_sa_path_rec record{};
  rdma_route route{};
  EXPECT_EQ(get({AF_INET, false, route}, IPPROTO_TCP, TCP_MAXSEG), 2048) << "no path yet";
  route.path_rec = &record;
  route.num_paths = 1;
  for (const auto& [code, bytes] : {std::pair{IBV_MTU_256, 256}, {IBV_MTU_1024, 1024}, {IBV_MTU_4096, 4096}}) {
    record.mtu = static_cast<uint8_t>(code);
    EXPECT_EQ(get({AF_INET, false, route}, IPPROTO_TCP, TCP_MAXSEG), bytes);
  }
}

TEST(StreamFacts, tell_the_connection_managers_route) {
  ibv_sa_path_rec record = example_record();
  rdma_route route{};
  route.path_rec = &record;
  route.num_paths = 1;
  ibv_path_data told{};
  socklen_t length = sizeof told;
  ASSERT_TRUE(get_stream_option({AF_INET, false, route}, {}, SOL_RDMA, RDMA_ROUTE, &told, &length));
  EXPECT_EQ(length, sizeof told);
  EXPECT_EQ(told.flags, 7U);
  EXPECT_EQ(told.path.sgid.raw[15], 1);
  EXPECT_EQ(told.path.dgid.raw[15], 2);
  EXPECT_EQ(ntohl(told.path.flowlabel_hoplimit), 0x12345U << 8U | 64U);
  EXPECT_EQ(told.path.tclass, 9);
  EXPECT_EQ(told.path.reversible_numpath, IBV_PATH_RECORD_REVERSIBLE | 1);
  EXPECT_EQ(ntohs(told.path.pkey), 0xffff);
  EXPECT_EQ(ntohs(told.path.qosclass_sl), 3);
  EXPECT_EQ(told.path.mtu, 0x80 | IBV_MTU_4096) << "exactly";
  EXPECT_EQ(told.path.rate, 0x80 | IBV_RATE_100_GBPS);
  EXPECT_EQ(told.path.packetlifetime, 0x80 | 18);
}

TEST(StreamFacts, tell_the_programs_route_before_the_connection_managers) {
  ibv_sa_path_rec record = example_record();
  rdma_route route{};
  route.path_rec = &record;
  route.num_paths = 1;
  Options options;
  options.route.resize(2);
  options.route[1].path.tclass = 77;
  std::array<ibv_path_data, 2> told{};
  socklen_t length = sizeof told;
  ASSERT_TRUE(get_stream_option({AF_INET, false, route}, options, SOL_RDMA, RDMA_ROUTE, told.data(), &length));
  EXPECT_EQ(length, sizeof told);
  EXPECT_EQ(told[1].path.tclass, 77);
}

TEST(StreamFacts, want_room_for_a_whole_route) {
  const rdma_route none{};
  ibv_path_data told{};
  socklen_t length = sizeof told - 1;
  EXPECT_EQ(get_stream_option({AF_INET, false, none}, {}, SOL_RDMA, RDMA_ROUTE, &told, &length).error().value, EINVAL);
  EXPECT_EQ(get_stream_option({AF_INET, false, none}, {}, SOL_RDMA, RDMA_ROUTE, &told, nullptr).error().value, EINVAL);
  Options options;
  options.route.resize(2);
  length = sizeof told;
  EXPECT_EQ(get_stream_option({AF_INET, false, none}, options, SOL_RDMA, RDMA_ROUTE, &told, &length).error().value,
            EINVAL);
  length = sizeof told;
  ASSERT_TRUE(get_stream_option({AF_INET, false, none}, {}, SOL_RDMA, RDMA_ROUTE, &told, &length));
  EXPECT_EQ(length, 0U) << "no path yet";
}

}  // namespace
}  // namespace ringbolt::rsocket
