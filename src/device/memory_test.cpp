// Memory regions: InfiniBand Architecture Specification 1.4, 10.6.3 (registration) and 10.6.4 (access).

#include "device/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "device/device_test_support.h"

namespace ringbolt::device {
namespace {

class RegionTest : public testing::Test {
 protected:
  static constexpr uint32_t kLocal = IBV_ACCESS_LOCAL_WRITE;

  /// An errno, or 0: it is kept.
  int make(uint64_t address, uint64_t length, uint32_t access, uint64_t iova) {
    region_.reset();
    auto made = MemoryRegion::create(device_.pd(), address, length, iova, access);
    if (!made) {
      return made.error().value;
    }
    region_ = std::move(*made);
    return 0;
  }
  int make(uint64_t address, uint64_t length, uint32_t access = kLocal) {
    return make(address, length, access, address);
  }
  bool find(uint32_t key, link::Region& region) { return device_.process().regions().find(key, region); }
  uint64_t own() const { return reinterpret_cast<uint64_t>(bytes_.data()); }

  DeviceUnderTest device_;
  std::array<std::byte, 4096> bytes_{};
  std::unique_ptr<MemoryRegion> region_;
};

/// Some pages, and what the program may do there.
class Mapping {
 public:
  static constexpr size_t kPage = 4096;
  explicit Mapping(int protection, size_t pages = 1)
      : length_(pages * kPage), at_(mmap(nullptr, length_, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Mapping() { munmap(at_, length_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  uint64_t address() const { return reinterpret_cast<uint64_t>(at_); }
  void unmap(size_t page) { munmap(static_cast<std::byte*>(at_) + page * kPage, kPage); }

 private:
  size_t length_;
  void* at_;
};

TEST_F(RegionTest, is_known_by_its_key_as_long_as_it_lives) {
  ASSERT_EQ(make(own() + 16, 100, Memory::kAll), 0);
  const uint32_t key = region_->key();
  link::Region region;
  ASSERT_TRUE(find(key, region));
  EXPECT_EQ(region.first, own() + 16);
  EXPECT_EQ(region.host_first, own() + 16);
  EXPECT_EQ(region.length, 100U);
  EXPECT_EQ(region.access, Memory::kAll);
  EXPECT_EQ(region.pd_key, device_.pd().key);
  EXPECT_EQ(region.bound_qpn, link::kAnyQueuePair);
  EXPECT_EQ(region.arena_id, 0U);
  region_.reset();
  EXPECT_FALSE(find(key, region));
}

TEST_F(RegionTest, remote_write_and_atomics_need_local_write) {
  EXPECT_EQ(make(own(), 8, IBV_ACCESS_REMOTE_WRITE), EINVAL);
  EXPECT_EQ(make(own(), 8, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
  EXPECT_EQ(make(own(), 8, IBV_ACCESS_REMOTE_READ), 0);
  EXPECT_EQ(make(own(), 8, IBV_ACCESS_REMOTE_WRITE | kLocal), 0);
  EXPECT_EQ(make(own(), 8, IBV_ACCESS_REMOTE_ATOMIC | kLocal), 0);
  EXPECT_EQ(make(own(), 8, 0), 0);
}

TEST_F(RegionTest, hints_are_taken_and_unknown_flags_are_not) {
  EXPECT_EQ(make(own(), 8, kLocal | IBV_ACCESS_RELAXED_ORDERING), 0);
  EXPECT_EQ(make(own(), 8, kLocal | IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
  EXPECT_EQ(make(own(), 8, kLocal | 1U << 18U), EINVAL);
}

TEST_F(RegionTest, may_be_named_by_other_addresses_than_its_own) {
  ASSERT_EQ(make(own(), 64, kLocal, 0x1000), 0);
  link::Region region;
  ASSERT_TRUE(find(region_->key(), region));
  EXPECT_EQ(region.first, 0x1000U);
  EXPECT_EQ(region.host_first, own());
  ASSERT_EQ(make(own(), 64, kLocal | IBV_ACCESS_ZERO_BASED), 0);
  ASSERT_TRUE(find(region_->key(), region));
  EXPECT_EQ(region.first, 0U);
}

TEST_F(RegionTest, does_not_wrap_around_the_address_space) {
  EXPECT_EQ(make(UINT64_MAX - 10, 100), EINVAL);
  EXPECT_EQ(make(own(), 64, kLocal, UINT64_MAX - 10), EINVAL);
}

TEST_F(RegionTest, is_of_mapped_memory_to_its_last_page) {
  Mapping pages(PROT_READ | PROT_WRITE, 3);
  EXPECT_EQ(make(pages.address(), 3 * Mapping::kPage), 0);
  region_.reset();
  pages.unmap(2);
  EXPECT_EQ(make(pages.address(), 3 * Mapping::kPage), EFAULT);
  EXPECT_EQ(make(pages.address(), 2 * Mapping::kPage + 1), EFAULT);
  EXPECT_EQ(make(pages.address(), 2 * Mapping::kPage), 0);
}

TEST_F(RegionTest, of_nothing_is_a_region) {
  EXPECT_EQ(make(own(), 0), 0);
  EXPECT_EQ(make(0, 0), 0);
}

TEST_F(RegionTest, reads_where_the_program_may_only_read) {
  Mapping page(PROT_READ);
  EXPECT_EQ(make(page.address(), 64, IBV_ACCESS_REMOTE_READ), 0);
}

TEST_F(RegionTest, keys_differ_and_rest_before_they_come_again) {
  std::vector<uint32_t> keys;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(make(own(), 8), 0);
    keys.push_back(region_->key());
  }
  std::ranges::sort(keys);
  EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end());
}

TEST_F(RegionTest, keeps_its_domain) {
  const uint32_t before = device_.pd().users.load();
  ASSERT_EQ(make(own(), 8), 0);
  EXPECT_EQ(device_.pd().users.load(), before + 1);
  region_.reset();
  EXPECT_EQ(device_.pd().users.load(), before);
}

TEST_F(RegionTest, over_shareable_memory_says_where_it_lies) {
  std::byte* const data = *device_.process().allocate_buffer(8192);
  const auto address = reinterpret_cast<uint64_t>(data);
  ASSERT_EQ(make(address + 100, 1000), 0);
  link::Region region;
  ASSERT_TRUE(find(region_->key(), region));
  EXPECT_NE(region.arena_id, 0U);
  EXPECT_EQ(region.arena_offset, 100U);
  region_.reset();
  device_.process().free_buffer(data);
}

// --- ibv_rereg_mr: 11.2.8.4 (reregister memory region).

TEST_F(RegionTest, changes_its_access_and_keeps_its_key) {
  ASSERT_EQ(make(own(), 64), 0);
  const uint32_t key = region_->key();
  ASSERT_EQ(region_->change(IBV_REREG_MR_CHANGE_ACCESS, nullptr, 0, 0, Memory::kAll), 0);
  EXPECT_EQ(region_->key(), key);
  link::Region region;
  ASSERT_TRUE(find(key, region));
  EXPECT_EQ(region.access, Memory::kAll);
  EXPECT_EQ(region.first, own());
  EXPECT_EQ(region.length, 64U);
}

TEST_F(RegionTest, may_not_begin_to_write_where_the_program_may_only_read) {
  const Mapping mapping(PROT_READ);
  if (make(mapping.address(), Mapping::kPage, kLocal) != EFAULT) {
    GTEST_SKIP() << "skip: this kernel has no MADV_POPULATE_WRITE (Linux 5.14)";
  }
  ASSERT_EQ(make(mapping.address(), Mapping::kPage, 0), 0);
  EXPECT_EQ(region_->change(IBV_REREG_MR_CHANGE_ACCESS, nullptr, 0, 0, kLocal), EFAULT);
  link::Region region;
  ASSERT_TRUE(find(region_->key(), region));
  EXPECT_EQ(region.access, 0U);
}

TEST_F(RegionTest, changes_its_place) {
  ASSERT_EQ(make(own(), 64, Memory::kAll), 0);
  ASSERT_EQ(region_->change(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, own() + 128, 32, 0), 0);
  link::Region region;
  ASSERT_TRUE(find(region_->key(), region));
  EXPECT_EQ(region.first, own() + 128);
  EXPECT_EQ(region.length, 32U);
  EXPECT_EQ(region.access, Memory::kAll);
  EXPECT_EQ(region_->address(), own() + 128);
}

TEST_F(RegionTest, changes_its_domain) {
  ProtectionDomain other(device_.context());
  ASSERT_EQ(make(own(), 64), 0);
  const uint32_t before = device_.pd().users.load();
  ASSERT_EQ(region_->change(IBV_REREG_MR_CHANGE_PD, &other, 0, 0, 0), 0);
  EXPECT_EQ(&region_->pd(), &other);
  EXPECT_EQ(other.users.load(), 1U);
  EXPECT_EQ(device_.pd().users.load(), before - 1);
  link::Region region;
  ASSERT_TRUE(find(region_->key(), region));
  EXPECT_EQ(region.pd_key, other.key);
  region_.reset();
}

TEST_F(RegionTest, refused_change_leaves_it_as_it_was) {
  ASSERT_EQ(make(own(), 64, kLocal), 0);
  EXPECT_EQ(region_->change(IBV_REREG_MR_CHANGE_ACCESS, nullptr, 0, 0, IBV_ACCESS_REMOTE_WRITE), EINVAL);
  EXPECT_EQ(region_->change(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, UINT64_MAX - 10, 100, 0), EINVAL);
  link::Region region;
  ASSERT_TRUE(find(region_->key(), region));
  EXPECT_EQ(region.access, kLocal);
  EXPECT_EQ(region.first, own());
  EXPECT_EQ(region.length, 64U);
}

TEST_F(RegionTest, is_stuck_once_its_domain_says_so_and_those_made_later_are_not) {
  ASSERT_EQ(make(own(), 64), 0);
  EXPECT_FALSE(region_->is_stuck());
  device_.pd().stuck_regions.store(device_.pd().regions_made.load());
  EXPECT_TRUE(region_->is_stuck());
  const auto later = *MemoryRegion::create(device_.pd(), own(), 64, own(), kLocal);
  EXPECT_FALSE(later->is_stuck());
}

}  // namespace
}  // namespace ringbolt::device
