// Memory regions: access flags, edges of their range, re-registration, other addresses.
#include <sys/mman.h>
#include <unistd.h>

#include "far.h"
#include "pattern.h"

namespace ringbolt::conformance {
namespace {

class MrTest : public testing::Test {
 protected:
  MrTest()
      : device(open_device()),
        pd(make_pd(device)),
        a(device, {}, {pd.get(), nullptr, nullptr, nullptr}),
        b(device, {}, {pd.get(), nullptr, nullptr, nullptr}),
        source(pd.get(), 4096) {
    connect(a, b);
  }

  /// Writes 8 bytes of `source` to the address and returns the completion's status.
  ibv_wc_status write(uint64_t address, uint32_t rkey, uint32_t length = 8) {
    SendWr wr(1, IBV_WR_RDMA_WRITE, {source.sge(0, length)});
    must_succeed(wr.remote(address, rkey).post(a.qp()), "ibv_post_send");
    return wait_completion(a.send_cq()).status;
  }

  Device device;
  Pd pd;
  Endpoint a;
  Endpoint b;
  Region source;
};

TEST_F(MrTest, every_set_of_flags_is_taken_or_refused) {
  std::vector<uint8_t> memory(4096);
  for (unsigned access = 0; access < 32; ++access) {
    const bool writes_remotely =
        (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
    const bool is_legal = !writes_remotely || (access & IBV_ACCESS_LOCAL_WRITE) != 0;
    errno = 0;
    const Mr mr = try_register(pd.get(), memory.data(), memory.size(), access);
    EXPECT_EQ(mr != nullptr, is_legal) << "access " << access;
    if (!is_legal) {
      EXPECT_EQ(errno, EINVAL) << "access " << access;
    }
  }
}

TEST_F(MrTest, optional_flags_are_accepted) {
  std::vector<uint8_t> memory(4096);
  const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
  const Mr mr = try_register(pd.get(), memory.data(), memory.size(), access);
  EXPECT_NE(mr, nullptr);
  const unsigned unknown = IBV_ACCESS_LOCAL_WRITE | (1u << 29);  // the end of the optional range
  const Mr other = try_register(pd.get(), memory.data(), memory.size(), unknown);
  EXPECT_NE(other, nullptr);
}

TEST_F(MrTest, unknown_flags_are_refused) {
  std::vector<uint8_t> memory(4096);
  EXPECT_EQ(ibv_reg_mr_iova2(pd.get(), memory.data(), memory.size(), 0, 1u << 18), nullptr);
  EXPECT_TRUE(errno == EINVAL || errno == EOPNOTSUPP) << errno;
}

TEST_F(MrTest, paging_on_demand_is_not_supported) {
  std::vector<uint8_t> memory(4096);
  EXPECT_EQ(ibv_reg_mr_iova2(pd.get(), memory.data(), memory.size(), 0,
                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND),
            nullptr);
  EXPECT_TRUE(errno == EOPNOTSUPP || errno == EINVAL) << errno;
}

TEST_F(MrTest, fields_say_what_was_registered) {
  std::vector<uint8_t> memory(100);
  const Mr mr = register_memory(pd.get(), memory.data() + 3, 50, IBV_ACCESS_LOCAL_WRITE);
  EXPECT_EQ(mr->addr, memory.data() + 3);
  EXPECT_EQ(mr->length, 50u);
  EXPECT_EQ(mr->pd, pd.get());
  EXPECT_EQ(mr->context, device.context.get());
}

// Programs reach the older entry point when their flags are constants, a newer one otherwise.
TEST_F(MrTest, both_entry_points_of_registration_work) {
  std::vector<uint8_t> memory(4096);
  const Mr old(must((ibv_reg_mr)(pd.get(), memory.data(), 4096, kAllAccess), "ibv_reg_mr"));
  const uint64_t address = reinterpret_cast<uint64_t>(memory.data());
  const Mr now(must(ibv_reg_mr_iova2(pd.get(), memory.data(), 4096, address, kAllAccess), "iova2"));
  EXPECT_EQ(write(address, old->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(write(address, now->rkey), IBV_WC_SUCCESS);
}

TEST_F(MrTest, memory_that_is_not_there_is_refused) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* gap = mmap(nullptr, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gap, MAP_FAILED);
  ASSERT_EQ(munmap(gap, 2 * page), 0);
  EXPECT_EQ(try_register(pd.get(), gap, page, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(try_register(pd.get(), nullptr, page, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EFAULT);
}

TEST_F(MrTest, read_only_memory_is_refused_for_writing) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_EQ(try_register(pd.get(), memory, page, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EFAULT);
  const Mr mr = try_register(pd.get(), memory, page, IBV_ACCESS_REMOTE_READ);
  EXPECT_NE(mr, nullptr);
  munmap(memory, page);
}

TEST_F(MrTest, range_that_wraps_is_refused) {
  EXPECT_EQ(try_register(pd.get(), source.data(), ~size_t{0}, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_TRUE(errno == EINVAL || errno == EFAULT || errno == ENOMEM) << errno;
}

TEST_F(MrTest, region_without_bytes_gives_access_to_none) {
  const Mr mr = register_memory(pd.get(), source.data(), 0, kAllAccess);
  EXPECT_EQ(write(source.address(), mr->rkey, 0), IBV_WC_SUCCESS);
  EXPECT_EQ(write(source.address(), mr->rkey, 1), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MrTest, overlapping_regions_have_rights_of_their_own) {
  Region memory(pd.get(), 4096);
  const Mr readable = register_memory(pd.get(), memory.data() + 1024, 2048, IBV_ACCESS_REMOTE_READ);
  EXPECT_EQ(write(memory.address(1024), memory.rkey()), IBV_WC_SUCCESS);
  EXPECT_EQ(write(memory.address(1024), readable->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MrTest, same_memory_can_be_registered_many_times) {
  Region memory(pd.get(), 4096);
  std::vector<Mr> copies;
  for (int i = 0; i < 100; ++i) {
    copies.push_back(register_memory(pd.get(), memory.data(), 4096, kAllAccess));
  }
  for (const Mr& mr : copies) {
    EXPECT_EQ(write(memory.address(8), mr->rkey), IBV_WC_SUCCESS);
  }
  copies.erase(copies.begin(), copies.begin() + 99);
  EXPECT_EQ(write(memory.address(8), copies.front()->rkey), IBV_WC_SUCCESS);
}

TEST_F(MrTest, keys_are_not_reused_at_once) {
  std::vector<uint8_t> memory(4096);
  uint32_t last = 0;
  for (int i = 0; i < 100; ++i) {
    const Mr mr = register_memory(pd.get(), memory.data(), 4096, kAllAccess);
    EXPECT_NE(mr->rkey, last);
    last = mr->rkey;
  }
  EXPECT_EQ(write(reinterpret_cast<uint64_t>(memory.data()), last), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MrTest, other_address_counts_for_keys_both_ways) {
  std::vector<uint8_t> memory(8192, kGuard);
  constexpr uint64_t kIova = 0x10000;
  const Mr mr(must(ibv_reg_mr_iova(pd.get(), memory.data(), 8192, kIova, kAllAccess), "iova"));
  source.fill(std::vector<Piece>{{0, 8}}, 5);
  EXPECT_EQ(write(kIova + 16, mr->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(memory.data() + 16, source.data(), 8), 0);
  EXPECT_EQ(memory[15], kGuard);
  EXPECT_EQ(memory[24], kGuard);
  // The local list of the same region uses the same addresses.
  SendWr wr(1, IBV_WR_RDMA_WRITE, {{kIova + 16, 8, mr->lkey}});
  ASSERT_EQ(wr.remote(kIova + 100, mr->rkey).post(a.qp()), 0);
  EXPECT_EQ(wait_completion(a.send_cq()).status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(memory.data() + 100, source.data(), 8), 0);
  EXPECT_EQ(write(reinterpret_cast<uint64_t>(memory.data()), mr->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MrTest, zero_based_region_starts_at_zero) {
  std::vector<uint8_t> memory(4096, kGuard);
  const Mr mr = try_register(pd.get(), memory.data() + 8, 1024, kAllAccess | IBV_ACCESS_ZERO_BASED);
  if (mr == nullptr) {
    ASSERT_TRUE(errno == EOPNOTSUPP || errno == EINVAL) << errno;
    GTEST_SKIP() << "this device has no zero-based regions";
  }
  source.fill(std::vector<Piece>{{0, 8}}, 5);
  EXPECT_EQ(write(0, mr->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(memory.data() + 8, source.data(), 8), 0);
  EXPECT_EQ(write(1020, mr->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MrTest, reregistration_changes_the_rights) {
  Region memory(pd.get(), 4096);
  ASSERT_EQ(ibv_rereg_mr(memory.mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                         IBV_ACCESS_REMOTE_READ),
            0);
  EXPECT_EQ(write(memory.address(), memory.rkey()), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MrTest, reregistration_grants_rights) {
  Region memory(pd.get(), 4096, 0);
  ASSERT_EQ(ibv_rereg_mr(memory.mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                         static_cast<int>(kAllAccess)),
            0);
  EXPECT_EQ(write(memory.address(), memory.rkey()), IBV_WC_SUCCESS);
}

TEST_F(MrTest, reregistration_changes_the_memory) {
  Region memory(pd.get(), 4096);
  std::vector<uint8_t> other(8192, kGuard);
  ASSERT_EQ(ibv_rereg_mr(memory.mr.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, other.data(),
                         other.size(), 0),
            0);
  EXPECT_EQ(memory.mr->addr, other.data());
  EXPECT_EQ(memory.mr->length, other.size());
  source.fill(std::vector<Piece>{{0, 8}}, 2);
  EXPECT_EQ(write(reinterpret_cast<uint64_t>(other.data()) + 8184, memory.rkey()),
            IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(other.data() + 8184, source.data(), 8), 0);
  EXPECT_EQ(write(memory.address(), memory.rkey()), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MrTest, reregistration_changes_the_domain) {
  const Pd elsewhere = make_pd(device);
  Region memory(pd.get(), 4096);
  ASSERT_EQ(ibv_rereg_mr(memory.mr.get(), IBV_REREG_MR_CHANGE_PD, elsewhere.get(), nullptr, 0, 0),
            0);
  EXPECT_EQ(memory.mr->pd, elsewhere.get());
  EXPECT_EQ(ibv_dealloc_pd(elsewhere.get()), EBUSY);
  EXPECT_EQ(write(memory.address(), memory.rkey()), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MrTest, bad_reregistration_leaves_the_region_as_it_was) {
  Region memory(pd.get(), 4096);
  EXPECT_EQ(ibv_rereg_mr(memory.mr.get(), 1 << 10, nullptr, nullptr, 0, 0),
            IBV_REREG_MR_ERR_INPUT);
  const int answer = ibv_rereg_mr(memory.mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                                  IBV_ACCESS_REMOTE_WRITE);
  EXPECT_NE(answer, 0);
  // The other error codes say that the region is not to be used any more.
  if (answer == IBV_REREG_MR_ERR_INPUT) {
    EXPECT_EQ(write(memory.address(), memory.rkey()), IBV_WC_SUCCESS);
  }
}

TEST_F(MrTest, deregistered_local_memory_is_a_local_protection_error) {
  std::vector<uint8_t> memory(64);
  ibv_sge sge{};
  {
    const Mr mr = register_memory(pd.get(), memory.data(), 64, kAllAccess);
    sge = {reinterpret_cast<uint64_t>(memory.data()), 8, mr->lkey};
  }
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {sge}).post(a.qp()), 0);
  expect_status(wait_completion(a.send_cq()), 1, IBV_WC_LOC_PROT_ERR);
}

TEST_F(MrTest, shared_memory_can_be_registered) {
  const int fd = memfd_create("conformance", MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, 1 << 20), 0);
  void* memory = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(memory, MAP_FAILED);
  {
    const Mr mr = register_memory(pd.get(), memory, 1 << 20, kAllAccess);
    source.fill(std::vector<Piece>{{0, 4096}}, 8);
    const uint64_t target = reinterpret_cast<uint64_t>(memory) + 1000;
    EXPECT_EQ(write(target, mr->rkey, 4096), IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(target), source.data(), 4096), 0);
  }
  munmap(memory, 1 << 20);
  close(fd);
}

}  // namespace
}  // namespace ringbolt::conformance
