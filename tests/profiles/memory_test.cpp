// What a post says when there is no memory for what faults and profiles keep of a send.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <string>

#include "rig.h"

namespace ringbolt::profiles {
namespace {

constexpr size_t kLongBytes = size_t{4} << 20U;
constexpr size_t kShortBytes = 64;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCanRunShort = false;  // a sanitizer ends a program that has no memory
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kCanRunShort = false;
#else
constexpr bool kCanRunShort = true;
#endif
#else
constexpr bool kCanRunShort = true;
#endif

size_t data_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmData:")) {
      return std::stoull(line.substr(7)) * 1024;
    }
  }
  return 0;
}

/// No large piece of memory can be had while it lives.
class NoMemory {
 public:
  NoMemory() {
    getrlimit(RLIMIT_DATA, &before_);
    const rlimit tight{data_bytes(), before_.rlim_max};
    setrlimit(RLIMIT_DATA, &tight);
  }
  ~NoMemory() { setrlimit(RLIMIT_DATA, &before_); }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;

 private:
  rlimit before_{};
};

class Memory : public testing::Test {
 protected:
  void SetUp() override {
    if (!kCanRunShort) {
      GTEST_SKIP() << "a sanitizer ends a program that has no memory";
    }
  }
};

/// A queue pair whose sends complete before they are delivered, from copies.
struct Early {
  Early() : buffer(rig, 2 * kLongBytes), pair(rig, rig.wanted(IBV_QPT_RC)) {
    for (size_t i = 0; i < kLongBytes; ++i) {
      buffer.data()[i] = static_cast<uint8_t>(i * 7 + i / 251);
    }
  }
  void receive(int count) const {
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(post_receive(pair.b.get(), buffer.piece(kLongBytes, kLongBytes)), 0);
    }
  }
  bool is_whole(size_t length) const { return std::memcmp(buffer.data(), buffer.data() + kLongBytes, length) == 0; }
  bool is_quiet() const {
    ibv_wc wc{};
    return ibv_poll_cq(rig.cq.get(), 1, &wc) == 0;
  }

  Faults faults{"completion-early 100%"};
  Rig rig{"roce"};
  Buffer buffer;
  Pair pair;
};

TEST_F(Memory, first_send_that_finds_none_is_not_posted) {
  const Early early;
  early.receive(1);
  ibv_send_wr* bad = nullptr;
  {
    const NoMemory none;
    EXPECT_EQ(post_send(early.pair.a.get(), early.buffer.piece(kLongBytes), IBV_WR_SEND, &bad), ENOMEM);
  }
  EXPECT_NE(bad, nullptr);
  EXPECT_TRUE(early.is_quiet());
  ASSERT_EQ(post_send(early.pair.a.get(), early.buffer.piece(kLongBytes)), 0);
  EXPECT_EQ(poll(early.rig.cq.get(), 2).size(), 2U);
  EXPECT_TRUE(early.is_whole(kLongBytes));
}

TEST_F(Memory, list_is_posted_up_to_the_send_that_finds_none) {
  const Early early;
  early.receive(3);
  ibv_sge short_piece = early.buffer.piece(kShortBytes);
  ibv_sge long_piece = early.buffer.piece(kLongBytes);
  ibv_send_wr second{};
  second.wr_id = 11;
  second.sg_list = &long_piece;
  second.num_sge = 1;
  second.opcode = IBV_WR_SEND;
  ibv_send_wr first = second;
  first.wr_id = 10;
  first.sg_list = &short_piece;
  first.next = &second;
  ASSERT_EQ(post_send(early.pair.a.get(), short_piece), 0);  // makes the room that all sends share
  EXPECT_EQ(poll(early.rig.cq.get(), 2).size(), 2U);

  ibv_send_wr* bad = nullptr;
  {
    const NoMemory none;
    EXPECT_EQ(ibv_post_send(early.pair.a.get(), &first, &bad), ENOMEM);
  }
  EXPECT_EQ(bad, &second);
  const auto all = poll(early.rig.cq.get(), 2);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_NE(of(all, 10), nullptr);
  EXPECT_TRUE(early.is_quiet());

  {
    const NoMemory none;
    EXPECT_EQ(ibv_post_send(early.pair.a.get(), &first, nullptr), ENOMEM);  // whole or not at all
  }
  EXPECT_TRUE(early.is_quiet());
  ASSERT_EQ(post_send(early.pair.a.get(), long_piece), 0);
  EXPECT_EQ(poll(early.rig.cq.get(), 2).size(), 2U);
  EXPECT_TRUE(early.is_whole(kLongBytes));
  EXPECT_TRUE(early.is_quiet());
}

}  // namespace
}  // namespace ringbolt::profiles
