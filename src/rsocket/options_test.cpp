#include "rsocket/options.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>

#include <cerrno>

namespace ringbolt::rsocket {
namespace {

int set(Options& options, int level, int name, int value, bool is_fixed = false) {
  const auto result = options.set(level, name, &value, sizeof value, is_fixed);
  return result ? 0 : result.error().value;
}

int get(const Options& options, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  return options.get(level, name, &value, &length) ? value : -2;
}

TEST(Options, doubles_buffer_sizes_as_linux_does) {
  Options options;
  EXPECT_EQ(set(options, SOL_SOCKET, SO_SNDBUF, 1 << 19), 0);
  EXPECT_EQ(get(options, SOL_SOCKET, SO_SNDBUF), 1 << 20);
  EXPECT_EQ(set(options, SOL_SOCKET, SO_RCVBUF, 1), 0);
  EXPECT_EQ(get(options, SOL_SOCKET, SO_RCVBUF), static_cast<int>(Settings::kMinBufferBytes));
  EXPECT_EQ(set(options, SOL_SOCKET, SO_RCVBUF, 0x7fffffff), 0);
  EXPECT_EQ(get(options, SOL_SOCKET, SO_RCVBUF), static_cast<int>(Settings::kMaxBufferBytes));
  EXPECT_EQ(set(options, SOL_SOCKET, SO_RCVBUF, -1), EINVAL);
}

TEST(Options, keeps_sizes_once_they_are_fixed) {
  Options options;
  const int before = get(options, SOL_SOCKET, SO_RCVBUF);
  EXPECT_EQ(set(options, SOL_SOCKET, SO_RCVBUF, 1 << 20, true), 0) << "accepted and ignored, as by other sockets";
  EXPECT_EQ(get(options, SOL_SOCKET, SO_RCVBUF), before);
  EXPECT_EQ(set(options, SOL_RDMA, RDMA_SQSIZE, 100, true), EINVAL);
}

TEST(Options, keeps_queue_sizes_within_what_credits_can_count) {
  Options options;
  EXPECT_EQ(set(options, SOL_RDMA, RDMA_SQSIZE, 0), 0);
  EXPECT_EQ(get(options, SOL_RDMA, RDMA_SQSIZE), 16);
  EXPECT_EQ(set(options, SOL_RDMA, RDMA_RQSIZE, 1 << 20), 0);
  EXPECT_EQ(get(options, SOL_RDMA, RDMA_RQSIZE), 0xfffe);
  EXPECT_EQ(set(options, SOL_RDMA, RDMA_INLINE, 0), 0);
  EXPECT_EQ(get(options, SOL_RDMA, RDMA_INLINE), 0);
  EXPECT_EQ(set(options, SOL_RDMA, RDMA_IOMAPSIZE, 300), 0);
  EXPECT_EQ(get(options, SOL_RDMA, RDMA_IOMAPSIZE), 256);
}

TEST(Options, turns_flags_into_0_and_1) {
  Options options;
  for (const auto& [level, name] : {std::pair{SOL_SOCKET, SO_REUSEADDR},
                                    {SOL_SOCKET, SO_KEEPALIVE},
                                    {SOL_SOCKET, SO_OOBINLINE},
                                    {IPPROTO_TCP, TCP_NODELAY},
                                    {IPPROTO_IPV6, IPV6_V6ONLY}}) {
    EXPECT_EQ(get(options, level, name), 0);
    EXPECT_EQ(set(options, level, name, 7), 0);
    EXPECT_EQ(get(options, level, name), 1);
  }
}

TEST(Options, refuses_what_does_not_exist_and_what_is_too_short) {
  Options options;
  EXPECT_EQ(set(options, SOL_SOCKET, SO_BINDTODEVICE, 1), ENOPROTOOPT);
  EXPECT_EQ(set(options, SOL_IP, 1, 1), ENOPROTOOPT);
  EXPECT_EQ(get(options, SOL_RDMA, 99), -2);
  const char byte = 1;
  EXPECT_EQ(options.set(IPPROTO_TCP, TCP_NODELAY, &byte, 1, false).error().value, EINVAL);
  EXPECT_EQ(options.set(SOL_SOCKET, SO_LINGER, &byte, 1, false).error().value, EINVAL);
  EXPECT_EQ(options.set(SOL_RDMA, RDMA_ROUTE, &byte, 1, false).error().value, EINVAL);
  EXPECT_EQ(set(options, IPPROTO_TCP, TCP_KEEPIDLE, 0), EINVAL);
}

TEST(Options, tells_structures_whole) {
  Options options;
  const linger given{1, 5};
  ASSERT_TRUE(options.set(SOL_SOCKET, SO_LINGER, &given, sizeof given, false));
  linger told{};
  socklen_t length = sizeof told;
  ASSERT_TRUE(options.get(SOL_SOCKET, SO_LINGER, &told, &length));
  EXPECT_EQ(told.l_onoff, 1);
  EXPECT_EQ(told.l_linger, 5);
  EXPECT_EQ(length, sizeof told);
  const timeval wrong{0, 1'000'000};
  EXPECT_EQ(options.set(SOL_SOCKET, SO_RCVTIMEO, &wrong, sizeof wrong, false).error().value, EDOM);
}

}  // namespace
}  // namespace ringbolt::rsocket
