#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "pair.h"

namespace ringbolt::rsocket_test {
namespace {

const std::vector<Option> kTwoMappings{{SOL_RDMA, RDMA_IOMAPSIZE, 2}};

/// A message makes sure that everything written before has arrived, and that mappings made before are known.
void sync(int from, int to) {
  char byte = 'x';
  ASSERT_EQ(rsend(from, &byte, 1, 0), 1) << std::strerror(errno);
  ASSERT_EQ(rrecv(to, &byte, 1, 0), 1) << std::strerror(errno);
}

TEST(Mapping, takes_what_the_peer_writes) {
  const Pair pair(kTwoMappings);
  std::vector<std::byte> memory(200'000);
  ASSERT_EQ(riomap(pair.server.fd(), memory.data(), memory.size(), PROT_WRITE, 0, 0), 0);
  sync(pair.server.fd(), pair.client.fd());
  const auto out = pattern_bytes(0, memory.size());
  ASSERT_EQ(riowrite(pair.client.fd(), out.data(), out.size(), 0, 0), out.size());
  sync(pair.client.fd(), pair.server.fd());
  EXPECT_EQ(memory, out);
}

TEST(Mapping, is_addressed_by_its_offset) {
  const Pair pair(kTwoMappings);
  std::vector<std::byte> first(1000);
  std::vector<std::byte> second(1000);
  ASSERT_EQ(riomap(pair.server.fd(), first.data(), first.size(), PROT_WRITE, 0, 5000), 5000);
  const off_t chosen = riomap(pair.server.fd(), second.data(), second.size(), PROT_WRITE, 0, -1);
  ASSERT_NE(chosen, -1);
  sync(pair.server.fd(), pair.client.fd());
  ASSERT_EQ(riowrite(pair.client.fd(), "abc", 3, 5997, 0), 3U);
  ASSERT_EQ(riowrite(pair.client.fd(), "def", 3, chosen, 0), 3U);
  sync(pair.client.fd(), pair.server.fd());
  EXPECT_EQ(std::memcmp(first.data() + 997, "abc", 3), 0);
  EXPECT_EQ(std::memcmp(second.data(), "def", 3), 0);
}

TEST(Mapping, ends_where_it_ends) {
  const Pair pair(kTwoMappings);
  std::vector<std::byte> memory(100);
  ASSERT_EQ(riomap(pair.server.fd(), memory.data(), memory.size(), PROT_WRITE, 0, 0), 0);
  sync(pair.server.fd(), pair.client.fd());
  const auto out = pattern_bytes(0, 150);
  EXPECT_EQ(riowrite(pair.client.fd(), out.data(), out.size(), 0, 0), 100U);
  EXPECT_EQ(riowrite(pair.client.fd(), out.data(), 1, 100, 0), static_cast<size_t>(-1));
  EXPECT_EQ(errno, EINVAL);
}

TEST(Mapping, beyond_what_the_peer_can_keep_is_refused) {
  const Pair pair(kTwoMappings);
  std::vector<std::byte> memory(300);
  EXPECT_EQ(riomap(pair.server.fd(), memory.data(), 100, PROT_WRITE, 0, 0), 0);
  EXPECT_EQ(riomap(pair.server.fd(), memory.data() + 100, 100, PROT_WRITE, 0, 100), 100);
  EXPECT_EQ(riomap(pair.server.fd(), memory.data() + 200, 100, PROT_WRITE, 0, 200), -1);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(riomap(pair.server.fd(), memory.data() + 200, 100, PROT_NONE, 0, 200), 200) << "the peer need not know it";
  EXPECT_EQ(riounmap(pair.server.fd(), memory.data(), 100), 0);
  EXPECT_EQ(riounmap(pair.server.fd(), memory.data(), 100), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(riomap(pair.server.fd(), memory.data() + 200, 100, PROT_WRITE, 0, 200), 200);
}

TEST(Mapping, is_not_to_be_had_by_default) {
  const Pair pair;
  std::vector<std::byte> memory(100);
  EXPECT_EQ(riomap(pair.server.fd(), memory.data(), memory.size(), PROT_WRITE, 0, 0), -1);
  EXPECT_EQ(errno, ENOMEM);
}

TEST(Mapping, can_be_made_and_unmade_for_as_long_as_one_likes) {
  const Pair pair(kTwoMappings);
  std::vector<std::byte> memory(64);
  for (uint64_t round = 0; round < 1000; ++round) {
    ASSERT_EQ(riomap(pair.server.fd(), memory.data(), memory.size(), PROT_WRITE, 0, 0), 0) << round;
    sync(pair.server.fd(), pair.client.fd());
    const auto out = pattern_bytes(round, memory.size());
    ASSERT_EQ(riowrite(pair.client.fd(), out.data(), out.size(), 0, 0), out.size());
    sync(pair.client.fd(), pair.server.fd());
    ASSERT_EQ(memory, out);
    ASSERT_EQ(riounmap(pair.server.fd(), memory.data(), memory.size()), 0);
  }
}

TEST(Mapping, is_written_in_order_with_the_stream) {
  const Pair pair(kTwoMappings);
  std::vector<std::byte> memory(8);
  ASSERT_EQ(riomap(pair.server.fd(), memory.data(), memory.size(), PROT_WRITE, 0, 0), 0);
  sync(pair.server.fd(), pair.client.fd());
  std::thread writing([&] {
    for (uint64_t i = 1; i <= 20'000; ++i) {
      ASSERT_EQ(riowrite(pair.client.fd(), &i, sizeof i, 0, 0), sizeof i);
      ASSERT_EQ(rsend(pair.client.fd(), &i, sizeof i, 0), 8);
    }
  });
  for (uint64_t i = 1; i <= 20'000; ++i) {
    uint64_t told = 0;
    ASSERT_EQ(rrecv(pair.server.fd(), &told, sizeof told, MSG_WAITALL), 8);
    ASSERT_EQ(told, i);
    uint64_t written = 0;
    std::memcpy(&written, memory.data(), sizeof written);
    ASSERT_GE(written, i) << "what was written before the message must be there";
  }
  writing.join();
}

}  // namespace
}  // namespace ringbolt::rsocket_test
