// A process and a peer of its, which is the same process in truth: what its keys allow, where its memory is mapped, and
// how copies to and from it end.

#include "link/remote_process.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <array>
#include <cstring>
#include <optional>

#include "link/peer_test_support.h"

namespace ringbolt::link {
namespace {

constexpr uint32_t kPd = 7;
constexpr uint32_t kRead = 4;
constexpr size_t kBytes = 3 * 4096;

class RemoteProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(table_.create());
    peer_ = std::make_shared<testing::FakePeer>(table_.descriptor(), -1);
    remote_.emplace(peer_);
    ASSERT_EQ(remote_->open_regions(), 0);
  }
  /// `memory` under the addresses from 0x1000 on.
  Region region_of(std::byte* memory, uint32_t arena_id = 0) {
    Region region;
    region.first = 0x1000;
    region.length = kBytes;
    region.host_first = reinterpret_cast<uint64_t>(memory);
    region.access = kRead;
    region.pd_key = kPd;
    region.arena_id = arena_id;
    return region;
  }
  /// Reads 100 bytes from `offset` of the region, in two pieces.
  CopyOutcome read(const Region& region, uint64_t offset) {
    const std::array<iovec, 2> pieces{{{own_.data(), 30}, {own_.data() + 1000, 70}}};
    return remote_->read(region, region.first + offset, pieces);
  }
  void expect_read(const std::byte* memory, uint64_t offset) {
    EXPECT_EQ(std::memcmp(own_.data(), memory + offset, 30), 0);
    EXPECT_EQ(std::memcmp(own_.data() + 1000, memory + offset + 30, 70), 0);
  }
  static void fill(std::byte* memory) {
    for (size_t i = 0; i < kBytes; ++i) {
      memory[i] = static_cast<std::byte>(i * 7 + 1);
    }
  }

  RegionTable table_;
  std::shared_ptr<testing::FakePeer> peer_;
  std::optional<RemoteProcess> remote_;
  std::array<std::byte, 4096> own_{};
};

TEST_F(RemoteProcessTest, sees_what_the_owner_publishes_and_hides) {
  std::array<std::byte, kBytes> memory{};
  const auto key = table_.add(region_of(memory.data()));
  ASSERT_TRUE(key);
  Region found;
  ASSERT_TRUE(remote_->find_region(*key, found));
  EXPECT_EQ(found.first, 0x1000U);
  EXPECT_EQ(found.pd_key, kPd);
  EXPECT_FALSE(remote_->find_region(*key ^ 0x100U, found));
  table_.hide(*key);
  EXPECT_FALSE(remote_->find_region(*key, found));
}

TEST_F(RemoteProcessTest, knows_no_region_without_the_table) {
  RemoteProcess blind(std::make_shared<testing::FakePeer>());
  EXPECT_EQ(blind.open_regions(), EBADF);
  EXPECT_EQ(blind.open_wakes(), EBADF);
  EXPECT_EQ(blind.wakes_error(), EBADF);
  Region found;
  EXPECT_FALSE(blind.has_regions());
  EXPECT_FALSE(blind.find_region(1, found));
  iovec piece{own_.data(), 8};
  EXPECT_EQ(blind.read(region_of(own_.data()), 0x1000, {&piece, 1}), CopyOutcome::unreachable);
  EXPECT_EQ(blind.write(region_of(own_.data()), 0x1000, {&piece, 1}), CopyOutcome::unreachable);
}

TEST_F(RemoteProcessTest, refuses_a_table_that_is_none) {
  const auto segment = SharedSegment::create("no table", kRegionTableBytes);
  ASSERT_TRUE(segment);
  RemoteProcess remote(std::make_shared<testing::FakePeer>(segment->descriptor(), segment->descriptor()));
  EXPECT_EQ(remote.open_regions(), EINVAL);
  EXPECT_FALSE(remote.has_regions());
  EXPECT_EQ(remote.open_wakes(), EINVAL);  // nor has it the size of a wake table
}

TEST_F(RemoteProcessTest, copies_private_memory_by_the_kernel) {
  if (!peer_->reachable) {
    GTEST_SKIP() << "skip: process_vm_readv is not to be had";
  }
  std::array<std::byte, kBytes> memory{};
  fill(memory.data());
  EXPECT_EQ(read(region_of(memory.data()), 5000), CopyOutcome::done);
  expect_read(memory.data(), 5000);
  iovec piece{own_.data() + 1000, 70};
  EXPECT_EQ(remote_->write(region_of(memory.data()), 0x1000 + 11, {&piece, 1}), CopyOutcome::done);
  EXPECT_EQ(std::memcmp(memory.data() + 11, own_.data() + 1000, 70), 0);
}

TEST_F(RemoteProcessTest, leaves_it_to_the_owner_where_the_kernel_does_not_let_us) {
  std::array<std::byte, kBytes> memory{};
  peer_->reachable = false;
  EXPECT_EQ(read(region_of(memory.data()), 0), CopyOutcome::unreachable);
}

TEST_F(RemoteProcessTest, says_that_memory_is_no_longer_there) {
  if (!peer_->reachable) {
    GTEST_SKIP() << "skip: process_vm_readv is not to be had";
  }
  void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const Region region = region_of(static_cast<std::byte*>(mapped));
  ASSERT_EQ(munmap(static_cast<std::byte*>(mapped) + 4096, 4096), 0);
  EXPECT_EQ(read(region, 0), CopyOutcome::done);
  EXPECT_EQ(read(region, 4090), CopyOutcome::fault);  // its end is gone
  EXPECT_EQ(read(region, 5000), CopyOutcome::fault);
  munmap(mapped, kBytes);
}

TEST_F(RemoteProcessTest, says_that_the_owner_has_ended) {
  if (!peer_->reachable) {
    GTEST_SKIP() << "skip: process_vm_readv is not to be had";
  }
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  peer_->process = child;
  std::array<std::byte, kBytes> memory{};
  EXPECT_EQ(read(region_of(memory.data()), 0), CopyOutcome::gone);
}

TEST_F(RemoteProcessTest, copies_shareable_memory_by_itself_and_what_is_not_mapped_by_the_kernel) {
  OwnArenas arenas;
  const auto made = arenas.make(kBytes);
  ASSERT_TRUE(made);
  fill(made->segment->data());
  const Region region = region_of(made->segment->data(), made->arena_id);
  const bool by_kernel = peer_->reachable;
  EXPECT_EQ(remote_->mapped(region, 0x1000, 8), nullptr);
  EXPECT_EQ(read(region, 100), by_kernel ? CopyOutcome::done : CopyOutcome::unreachable);
  peer_->reachable = false;
  const base::UniqueFd copy(dup(made->segment->descriptor()));
  ASSERT_EQ(remote_->arenas().add(made->arena_id, made->segment->length_bytes(), copy), 0);
  EXPECT_NE(remote_->mapped(region, 0x1000, 8), nullptr);
  EXPECT_EQ(read(region, 200), CopyOutcome::done);
  expect_read(made->segment->data(), 200);
  const auto key = table_.add(region);
  ASSERT_TRUE(key);
  EXPECT_NE(remote_->reach(*key, kPd, 1, kRead, 0x1000 + 64, 64), nullptr);
  EXPECT_EQ(remote_->reach(*key, kPd + 1, 1, kRead, 0x1000, 64), nullptr) << "another domain";
  EXPECT_EQ(remote_->reach(*key, kPd, 1, kRead | 2U, 0x1000, 64), nullptr) << "an access that it does not give";
  EXPECT_EQ(remote_->reach(*key, kPd, 1, kRead, 0x1000 + kBytes - 63, 64), nullptr) << "beyond its end";
}

}  // namespace
}  // namespace ringbolt::link
