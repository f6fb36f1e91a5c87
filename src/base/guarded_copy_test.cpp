#include "base/guarded_copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace ringbolt::base {
namespace {

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

/// Four pages; the last two may not be touched.
class GuardedCopy : public testing::Test {
 protected:
  void SetUp() override {
    void* memory = mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    pages = static_cast<std::byte*>(memory);
    ASSERT_EQ(mprotect(pages + 2 * kPage, 2 * kPage, PROT_NONE), 0);
  }
  void TearDown() override { munmap(pages, 4 * kPage); }

  /// Before Linux 5.14, and under an emulator, nobody tells what may be written.
  bool kernel_tells_what_is_read_only() const {
    void* probe = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool tells = madvise(probe, kPage, MADV_POPULATE_WRITE) != 0 && madvise(probe, kPage, MADV_POPULATE_READ) == 0;
    munmap(probe, kPage);
    return tells;
  }

  std::byte* pages = nullptr;
};

TEST_F(GuardedCopy, moves_every_byte_and_no_other) {
  std::vector<std::byte> source(kPage + 100);
  for (size_t i = 0; i < source.size(); ++i) {
    source[i] = static_cast<std::byte>(i * 7 + i / 251);
  }
  ASSERT_TRUE(guarded_copy(pages + 10, source.data(), source.size()));
  EXPECT_EQ(std::memcmp(pages + 10, source.data(), source.size()), 0);
  EXPECT_EQ(pages[9], std::byte{0});
  EXPECT_EQ(pages[10 + source.size()], std::byte{0});
  EXPECT_TRUE(guarded_copy(pages + 3 * kPage, nullptr, 0));
}

// On behalf of a peer: what orders it with the program's accesses is between the two programs. The fences are as good
// as that; thread sanitizer does not know them, and must not ask for more.
TEST_F(GuardedCopy, is_no_race_with_a_program_that_was_told_by_its_peer) {
  const std::vector<std::byte> source(kPage, std::byte{5});
  std::atomic<bool> is_there{false};
  std::thread service([&] {
    EXPECT_TRUE(guarded_copy(pages, source.data(), source.size()));
    std::atomic_thread_fence(std::memory_order_release);
    is_there.store(true, std::memory_order_relaxed);
  });
  while (!is_there.load(std::memory_order_relaxed)) {
    std::this_thread::yield();
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  EXPECT_EQ(pages[kPage - 1], std::byte{5});
  service.join();
}

TEST_F(GuardedCopy, says_so_when_either_side_is_not_there) {
  std::vector<std::byte> other(kPage);
  EXPECT_FALSE(guarded_copy(pages + 2 * kPage, other.data(), 1));
  EXPECT_FALSE(guarded_copy(pages + 2 * kPage - 8, other.data(), 16));
  EXPECT_FALSE(guarded_copy(other.data(), pages + 2 * kPage, 1));
  EXPECT_FALSE(guarded_copy(other.data(), pages + 2 * kPage - 8, 16));
  EXPECT_TRUE(guarded_copy(pages + 2 * kPage - 8, other.data(), 8));
}

TEST_F(GuardedCopy, does_not_write_what_is_read_only) {
  if (!kernel_tells_what_is_read_only()) {
    GTEST_SKIP() << "skip: this kernel does not tell what may be written";
  }
  std::vector<std::byte> other(8, std::byte{1});
  ASSERT_EQ(mprotect(pages, kPage, PROT_READ), 0);
  EXPECT_FALSE(guarded_copy(pages, other.data(), other.size()));
  EXPECT_TRUE(guarded_copy(other.data(), pages, other.size()));
  EXPECT_EQ(other[7], std::byte{0});
}

TEST_F(GuardedCopy, tells_what_is_accessible) {
  EXPECT_TRUE(is_accessible(pages + 1, 2 * kPage - 1, true));
  EXPECT_FALSE(is_accessible(pages + 1, 2 * kPage, true));
  EXPECT_FALSE(is_accessible(pages + 1, 2 * kPage, false));
  EXPECT_TRUE(is_accessible(pages + 3 * kPage, 0, true));
  ASSERT_EQ(mprotect(pages, kPage, PROT_READ), 0);
  EXPECT_TRUE(is_accessible(pages, 8, false));
  EXPECT_TRUE(!kernel_tells_what_is_read_only() || !is_accessible(pages, 8, true));
  ASSERT_EQ(munmap(pages, kPage), 0);
  EXPECT_FALSE(is_accessible(pages, 8, false));
}

}  // namespace
}  // namespace ringbolt::base
