// WRITE, READ and atomics through lanes, by either end: InfiniBand Architecture Specification 1.4, 9.4 and 9.7.4.1.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>

#include "device/lane_test_support.h"

namespace ringbolt::device {
namespace {

/// How the requester gets at the peer's memory.
enum class Way { kernel, mapped, by_peer, blind };

const char* name_of(Way way) {
  switch (way) {
    case Way::kernel:
      return "kernel";
    case Way::mapped:
      return "mapped";
    case Way::by_peer:
      return "by_peer";
    case Way::blind:
      break;
  }
  return "blind";
}

void PrintTo(Way way, std::ostream* out) { *out << name_of(way); }

std::string name_of_way(const testing::TestParamInfo<Way>& way) { return name_of(way.param); }

/// RC: each operation by each way.
class LaneOperationTest : public LanePairTest, public testing::WithParamInterface<Way> {
 protected:
  static constexpr size_t kBytes = 100'000;

  void SetUp() override {
    if (GetParam() == Way::kernel && !link::testing::kernel_reads_other_memory()) {
      GTEST_SKIP() << "skip: process_vm_readv is not to be had";
    }
    begin(IBV_QPT_RC);
    shared_ = std::make_unique<Shareable>(device_, kBytes);
    if (GetParam() == Way::mapped) {
      introduce_arenas();
    } else if (GetParam() != Way::kernel) {
      hide_memory(GetParam() == Way::blind);
    }
    from_.fill(5);
  }
  bool is_shared() const { return GetParam() == Way::mapped; }
  /// The target takes part.
  bool needs_peer() const { return GetParam() == Way::by_peer || GetParam() == Way::blind; }
  std::byte* target() { return is_shared() ? shared_->data() : to_.data(); }
  uint64_t address(size_t offset = 0) { return (is_shared() ? shared_->address() : to_.address()) + offset; }
  uint32_t key() { return is_shared() ? shared_->key() : to_.key(); }
  uint64_t word(size_t offset) {
    uint64_t value = 0;
    std::memcpy(&value, target() + offset, sizeof value);
    return value;
  }
  void set_word(size_t offset, uint64_t value) { std::memcpy(target() + offset, &value, sizeof value); }
  uint64_t own_word(size_t offset) {
    uint64_t value = 0;
    std::memcpy(&value, from_.data() + offset, sizeof value);
    return value;
  }
  /// What the send ends with, whoever does the work.
  Ends pump_and_poll() {
    Ends ends;
    for (int turns = 0; turns < 64 && ends.empty(); ++turns) {
      ends = a_->sent();
      b_->take_arrived();
    }
    return ends;
  }
  std::unique_ptr<Shareable> shared_;
};
INSTANTIATE_TEST_SUITE_P(Ways, LaneOperationTest, testing::Values(Way::kernel, Way::mapped, Way::by_peer, Way::blind),
                         name_of_way);

TEST_P(LaneOperationTest, write_puts_its_bytes_where_it_says_and_nowhere_else) {
  for (const uint32_t length : {0U, 1U, 8U, 8192U, 8193U, 50'000U}) {
    std::memset(target(), 0, kBytes);
    ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_WRITE, length, from_.piece(7, length), address(13), key()), 0);
    EXPECT_EQ(pump_and_poll(), (Ends{{length, IBV_WC_SUCCESS}})) << length;
    EXPECT_EQ(std::memcmp(target() + 13, from_.data() + 7, length), 0) << length;
    EXPECT_EQ(target()[12], std::byte{0});
    EXPECT_EQ(target()[13 + length], std::byte{0});
  }
  EXPECT_TRUE(b_->received().empty());  // its target does not notice
}

TEST_P(LaneOperationTest, write_needs_its_target_only_where_its_memory_can_not_be_reached) {
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_WRITE, 1, from_.piece(0, 8), address(), key()), 0);
  EXPECT_EQ(a_->sent(), needs_peer() ? Ends{} : (Ends{{1, IBV_WC_SUCCESS}}));
  EXPECT_EQ(peer_->rings > 0, needs_peer());  // who is written to seldom polls
  b_->take_arrived();
  EXPECT_EQ(a_->sent(), needs_peer() ? (Ends{{1, IBV_WC_SUCCESS}}) : Ends{});
}

TEST_P(LaneOperationTest, write_gathers_its_pieces) {
  std::array<ibv_sge, 3> pieces{from_.piece(0, 10'000), from_.piece(0, 0), from_.piece(20'000, 7)};
  ibv_send_wr wr = End::request(IBV_WR_RDMA_WRITE, 1, pieces.data());
  wr.num_sge = 3;
  wr.wr.rdma = {address(), key()};
  ASSERT_EQ(a_->post(wr), 0);
  EXPECT_EQ(pump_and_poll(), (Ends{{1, IBV_WC_SUCCESS}}));
  EXPECT_EQ(std::memcmp(target(), from_.data(), 10'000), 0);
  EXPECT_EQ(std::memcmp(target() + 10'000, from_.data() + 20'000, 7), 0);
}

TEST_P(LaneOperationTest, immediate_comes_behind_its_data_and_takes_a_receive) {
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_WRITE_WITH_IMM, 1, from_.piece(0, 9000), address(), key()), 0);
  b_->take_arrived();
  a_->push_sends();
  b_->take_arrived();
  EXPECT_EQ(std::memcmp(target(), from_.data(), 9000), 0);  // no receive yet
  EXPECT_TRUE(a_->sent().empty());
  ASSERT_EQ(b_->receive(2), 0);  // which needs no memory
  const ibv_wc wc = b_->received_one();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(wc.byte_len, 9000U);
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_SUCCESS}}));
}

TEST_P(LaneOperationTest, read_fetches_what_it_says_into_its_pieces) {
  for (const uint32_t length : {0U, 1U, 8192U, 8193U, 50'000U}) {
    for (uint32_t i = 0; i < length; ++i) {
      target()[i + 3] = static_cast<std::byte>(i * 11 + length);
    }
    from_.fill(0);
    std::array<ibv_sge, 2> pieces{from_.piece(5, length / 3), from_.piece(60'000, length - length / 3)};
    ibv_send_wr wr = End::request(IBV_WR_RDMA_READ, length, pieces.data());
    wr.num_sge = 2;
    wr.wr.rdma = {address(3), key()};
    ASSERT_EQ(a_->post(wr), 0);
    EXPECT_EQ(pump_and_poll(), (Ends{{length, IBV_WC_SUCCESS}})) << length;
    EXPECT_EQ(std::memcmp(from_.data() + 5, target() + 3, length / 3), 0) << length;
    EXPECT_EQ(std::memcmp(from_.data() + 60'000, target() + 3 + length / 3, length - length / 3), 0) << length;
    EXPECT_EQ(from_.data()[60'000 + length - length / 3], static_cast<std::byte>((60'000 + length - length / 3) * 31));
  }
}

TEST_P(LaneOperationTest, fetch_and_add_gives_the_value_of_before_and_wraps) {
  set_word(16, UINT64_MAX - 1);
  ASSERT_EQ(a_->fetch_add(1, from_.piece(0, 8), address(16), key(), 5), 0);
  EXPECT_EQ(pump_and_poll(), (Ends{{1, IBV_WC_SUCCESS}}));
  EXPECT_EQ(own_word(0), UINT64_MAX - 1);
  EXPECT_EQ(word(16), 3U);
}

TEST_P(LaneOperationTest, compare_and_swap_swaps_what_is_equal_alone) {
  set_word(24, 77);
  ASSERT_EQ(a_->compare_swap(1, from_.piece(0, 8), address(24), key(), 77, 88), 0);
  EXPECT_EQ(pump_and_poll(), (Ends{{1, IBV_WC_SUCCESS}}));
  EXPECT_EQ(own_word(0), 77U);
  EXPECT_EQ(word(24), 88U);
  ASSERT_EQ(a_->compare_swap(2, from_.piece(8, 8), address(24), key(), 77, 99), 0);
  EXPECT_EQ(pump_and_poll(), (Ends{{2, IBV_WC_SUCCESS}}));
  EXPECT_EQ(own_word(8), 88U);
  EXPECT_EQ(word(24), 88U);
}

TEST_P(LaneOperationTest, more_atomics_than_can_be_under_way_are_all_done_once) {
  constexpr uint64_t kCount = 3 * link::kLaneResponses;
  set_word(0, 0);
  for (uint64_t id = 0; id < kCount; ++id) {
    ASSERT_EQ(a_->fetch_add(id, from_.piece(id * 8, 8), address(), key(), 1), 0);
  }
  Ends all;
  for (int turns = 0; turns < 100 && all.size() < kCount; ++turns) {
    const Ends some = a_->sent();
    all.insert(all.end(), some.begin(), some.end());
    b_->take_arrived();
  }
  ASSERT_EQ(all.size(), kCount);
  for (uint64_t id = 0; id < kCount; ++id) {
    EXPECT_EQ(all[id], (std::pair{id, IBV_WC_SUCCESS}));
    EXPECT_EQ(own_word(id * 8), id);
  }
  EXPECT_EQ(word(0), kCount);
}

TEST_P(LaneOperationTest, atomics_reads_and_writes_are_executed_in_their_order) {
  set_word(0, 1);
  set_word(8, 0);
  std::memcpy(from_.data() + 64, "newvalue", 8);
  ASSERT_EQ(a_->fetch_add(1, from_.piece(0, 8), address(), key(), 1), 0);
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_READ, 2, from_.piece(8, 8), address(), key()), 0);
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_WRITE, 3, from_.piece(64, 8), address(8), key()), 0);
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_READ, 4, from_.piece(16, 8), address(8), key()), 0);
  pump();
  EXPECT_EQ(a_->sent().size(), 4U);
  EXPECT_EQ(own_word(0), 1U);
  EXPECT_EQ(own_word(8), 2U);
  EXPECT_EQ(std::memcmp(from_.data() + 16, "newvalue", 8), 0);
}

// 10.8.3.3: a fenced request begins once all READs and atomics before it are complete.
TEST_P(LaneOperationTest, fenced_send_waits_for_the_atomic_before_it) {
  ASSERT_EQ(b_->receive(9, {to_.piece(90'000, 8)}), 0);
  set_word(0, 0x1122334455667788ULL);
  ASSERT_EQ(a_->fetch_add(1, from_.piece(0, 8), address(), key(), 0), 0);
  ASSERT_EQ(a_->send(2, from_.piece(0, 8), IBV_SEND_FENCE), 0);
  pump();
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}}));
  EXPECT_EQ(b_->received(), (Ends{{9, IBV_WC_SUCCESS}}));
  EXPECT_EQ(std::memcmp(to_.data() + 90'000, from_.data(), 8), 0);  // what the atomic brought
  EXPECT_EQ(own_word(0), 0x1122334455667788ULL);
}

// --- Refusals. Each is tried where the target's memory is reached, and where the target checks by itself.

/// What a WRITE, READ or atomic asks for.
struct Asked {
  ibv_wr_opcode opcode;
  uint64_t address;
  uint32_t key;
  uint32_t length;
};

class LaneRefusalTest : public LaneOperationTest {
 protected:
  void refuses(const Asked& asked, ibv_wc_status status, ibv_event_type event) {
    const std::vector<std::byte> before(to_.data(), to_.data() + kBytes);
    ibv_sge piece = from_.piece(0, asked.length);
    ibv_send_wr wr = End::request(asked.opcode, 1, &piece);
    if (asked.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      wr.wr.atomic = {asked.address, 1, 0, asked.key};
    } else {
      wr.wr.rdma = {asked.address, asked.key};
    }
    ASSERT_EQ(a_->post(wr), 0);
    ASSERT_EQ(a_->send(2, from_.piece(0, 8)), 0);
    ASSERT_EQ(b_->receive(3, {to_.piece(0, 8)}), 0);
    Ends ends;
    for (int turns = 0; turns < 16 && ends.size() < 2; ++turns) {
      const Ends some = a_->sent();
      ends.insert(ends.end(), some.begin(), some.end());
      b_->take_arrived();
    }
    EXPECT_EQ(ends, (Ends{{1, status}, {2, IBV_WC_WR_FLUSH_ERR}}));
    EXPECT_EQ(std::memcmp(before.data(), to_.data(), kBytes), 0);
    EXPECT_EQ(a_->state(), IBV_QPS_ERR);
    EXPECT_EQ(b_->state(), IBV_QPS_ERR);
    EXPECT_EQ(device_.next_event(), event);
    EXPECT_EQ(b_->received(), (Ends{{3, IBV_WC_WR_FLUSH_ERR}}));
  }
  void refuses_access(const Asked& asked) { refuses(asked, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR); }
};
INSTANTIATE_TEST_SUITE_P(Ways, LaneRefusalTest, testing::Values(Way::kernel, Way::by_peer, Way::blind), name_of_way);

TEST_P(LaneRefusalTest, unknown_key) { refuses_access({IBV_WR_RDMA_WRITE, to_.address(), to_.key() ^ 1, 8}); }
TEST_P(LaneRefusalTest, key_of_zero) { refuses_access({IBV_WR_RDMA_READ, to_.address(), 0, 8}); }
// Requests end in their order, and the queue pair that refuses one fails with it.
TEST_P(LaneRefusalTest, behind_a_full_lane_both_ends_hear_of_it_once_there_is_room) {
  for (uint64_t id = 0; id < link::kLaneSlots; ++id) {
    ASSERT_EQ(a_->send(id, from_.piece(0, 8)), 0);
  }
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_WRITE, link::kLaneSlots, from_.piece(0, 8), to_.address(), to_.key() ^ 1), 0);
  EXPECT_EQ(a_->sent(), Ends{});
  EXPECT_EQ(a_->state(), IBV_QPS_RTS);
  for (uint64_t id = 0; id < link::kLaneSlots; ++id) {
    ASSERT_EQ(b_->receive(id, {to_.piece(0, 8)}), 0);
  }
  Ends ends;
  size_t received = 0;
  for (int turns = 0; turns < 64 && ends.size() <= link::kLaneSlots; ++turns) {  // a completion queue holds fewer
    pump();
    received += b_->received().size();
    const Ends some = a_->sent();
    ends.insert(ends.end(), some.begin(), some.end());
  }
  EXPECT_EQ(received, size_t{link::kLaneSlots});
  ASSERT_EQ(ends.size(), size_t{link::kLaneSlots} + 1);
  EXPECT_EQ(ends.back(), (Ends::value_type{link::kLaneSlots, IBV_WC_REM_ACCESS_ERR}));
  EXPECT_EQ(a_->state(), IBV_QPS_ERR);
  EXPECT_EQ(b_->state(), IBV_QPS_ERR);
}
TEST_P(LaneRefusalTest, byte_beyond_the_end) {
  refuses_access({IBV_WR_RDMA_WRITE, to_.address() + to_.length() - 7, to_.key(), 8});
}
TEST_P(LaneRefusalTest, byte_before_the_beginning) {
  refuses_access({IBV_WR_RDMA_READ, to_.address() - 1, to_.key(), 8});
}
TEST_P(LaneRefusalTest, address_that_wraps) { refuses_access({IBV_WR_RDMA_WRITE, UINT64_MAX - 3, to_.key(), 8}); }

TEST_P(LaneRefusalTest, region_without_remote_write) {
  Memory closed(device_.pd(), 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
  refuses_access({IBV_WR_RDMA_WRITE, closed.address(), closed.key(), 8});
}
TEST_P(LaneRefusalTest, region_without_remote_read) {
  Memory closed(device_.pd(), 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  refuses_access({IBV_WR_RDMA_READ, closed.address(), closed.key(), 8});
}
TEST_P(LaneRefusalTest, region_without_remote_atomics) {
  Memory closed(device_.pd(), 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  const uint64_t aligned = (closed.address() + 7) / 8 * 8;
  refuses_access({IBV_WR_ATOMIC_FETCH_AND_ADD, aligned, closed.key(), 8});
}
TEST_P(LaneRefusalTest, region_of_another_domain) {
  ProtectionDomain other(device_.context());
  Memory foreign(other, 64, Memory::kAll);
  refuses_access({IBV_WR_RDMA_WRITE, foreign.address(), foreign.key(), 8});
}
TEST_P(LaneRefusalTest, region_whose_memory_is_gone) {
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  const auto address = reinterpret_cast<uint64_t>(page);
  const auto region = *MemoryRegion::create(device_.pd(), address, 4096, address, Memory::kAll);
  ASSERT_EQ(munmap(page, 4096), 0);  // without ibv_dereg_mr
  refuses_access({IBV_WR_RDMA_WRITE, address, region->key(), 8});
}
// 9.7.4.1.2: what the queue pair itself does not take is an invalid request. Where the peer looks by itself it knows
// its queue pair's word for all ways alike.
TEST_P(LaneRefusalTest, queue_pair_that_takes_no_reads) {
  b_->connection.receiver.set_access(IBV_ACCESS_REMOTE_WRITE);
  b_->core.attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  refuses({IBV_WR_RDMA_READ, to_.address(), to_.key(), 8}, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}
// 9.4.5: atomics are of aligned words.
TEST_P(LaneRefusalTest, misaligned_atomic) {
  const uint64_t odd = (to_.address() + 7) / 8 * 8 + 4;
  refuses({IBV_WR_ATOMIC_FETCH_AND_ADD, odd, to_.key(), 8}, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

// --- What fails at the requester.

TEST_F(LanePairTest, atomic_of_another_length_than_eight_fails_locally) {
  for (const uint32_t length : {0U, 4U, 16U}) {
    begin(IBV_QPT_RC);
    ASSERT_EQ(a_->fetch_add(1, from_.piece(0, length), to_.address(), to_.key(), 1), 0);
    EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_LOC_LEN_ERR}})) << length;
    EXPECT_EQ(b_->state(), IBV_QPS_RTS);
  }
}

TEST_F(LanePairTest, what_brings_data_needs_memory_that_may_be_written) {
  Memory read_only(device_.pd(), 64, IBV_ACCESS_REMOTE_READ);
  begin(IBV_QPT_RC);
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_READ, 1, read_only.piece(0, 8), to_.address(), to_.key()), 0);
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_LOC_PROT_ERR}}));
  begin(IBV_QPT_RC);
  ASSERT_EQ(a_->fetch_add(1, read_only.piece(0, 8), to_.address(), to_.key(), 1), 0);
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_LOC_PROT_ERR}}));
  begin(IBV_QPT_RC);
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_WRITE, 1, read_only.piece(0, 8), to_.address(), to_.key()), 0);
  pump();
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_SUCCESS}}));
}

TEST_F(LanePairTest, operations_beyond_a_gibibyte_fail_locally) {
  for (const auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    begin(IBV_QPT_RC);
    ibv_sge piece = from_.piece(0, 8);
    piece.length = (1U << 30U) + 1;
    ASSERT_EQ(a_->one_sided(opcode, 1, piece, to_.address(), to_.key()), 0);
    EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_LOC_LEN_ERR}})) << opcode;
  }
}

// 9.7.4.1.4: without a byte no key is looked at; whether the queue pair takes the operation at all is.
TEST_F(LanePairTest, operation_without_a_byte_needs_no_key) {
  begin(IBV_QPT_RC);
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_WRITE, 1, from_.piece(0, 0), 0, 0x1234), 0);
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_READ, 2, from_.piece(0, 0), 0, 0x1234), 0);
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}}));
  b_->connection.receiver.set_access(0);
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_READ, 3, from_.piece(0, 0), 0, 0x1234), 0);
  EXPECT_EQ(a_->sent(), (Ends{{3, IBV_WC_REM_INV_REQ_ERR}}));
}

TEST_F(LanePairTest, key_bound_to_one_queue_pair_is_no_other_ones) {
  link::Region bound;
  bound.first = bound.host_first = to_.address();
  bound.length = 64;
  bound.access = Memory::kAll;
  bound.pd_key = device_.pd().key;
  bound.bound_qpn = kSecond;
  const uint32_t its = *device_.process().regions().add(bound);
  bound.bound_qpn = kSecond + 1;
  const uint32_t others = *device_.process().regions().add(bound);
  begin(IBV_QPT_RC);
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_WRITE, 1, from_.piece(0, 8), to_.address(), its), 0);
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_WRITE, 2, from_.piece(0, 8), to_.address(), others), 0);
  pump();
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_REM_ACCESS_ERR}}));
  for (const uint32_t key : {its, others}) {
    device_.process().regions().hide(key);
    device_.process().regions().release(key);
  }
}

// 9.8.2: the responder of UC drops what it must not do, and says nothing.
TEST_F(LanePairTest, uc_loses_a_write_that_is_not_allowed) {
  for (const bool is_blind : {false, true}) {
    begin(IBV_QPT_UC);
    if (is_blind) {
      hide_memory(true);
    }
    to_.fill(0);
    ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_WRITE, 1, from_.piece(0, 8), to_.address(), to_.key() ^ 1), 0);
    ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_WRITE, 2, from_.piece(0, 8), to_.address() + 64, to_.key()), 0);
    pump();
    EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}})) << is_blind;
    EXPECT_EQ(to_.data()[1], std::byte{31});
    EXPECT_TRUE(are_equal(from_, 0, to_, 64, 8)) << is_blind;
    EXPECT_EQ(b_->state(), IBV_QPS_RTS);
  }
}

TEST_F(LanePairTest, region_is_announced_for_the_time_of_a_copy_alone) {
  begin(IBV_QPT_RC);
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_WRITE, 1, from_.piece(0, 8), to_.address(), to_.key()), 0);
  EXPECT_EQ(b_->connection.receiver.announced_key(), 0U);
}

// 10.8.3.3: an atomic takes effect after the WRITE before it, though nobody but the peer can do that one.
TEST_F(LanePairTest, atomic_waits_for_what_the_peer_writes) {
  begin(IBV_QPT_RC);
  Shareable shared(device_, 64);
  introduce_arenas();
  hide_memory();
  to_.fill(0);
  from_.fill(5);
  std::memset(shared.data(), 0, 8);
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_WRITE, 1, from_.piece(0, 64), to_.address(), to_.key()), 0);
  ASSERT_EQ(a_->fetch_add(2, from_.piece(64, 8), shared.address(), shared.key(), 1), 0);
  EXPECT_TRUE(a_->sent().empty());
  uint64_t word = 0;
  std::memcpy(&word, shared.data(), sizeof word);
  EXPECT_EQ(word, 0U);
  pump();
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}}));
  std::memcpy(&word, shared.data(), sizeof word);
  EXPECT_EQ(word, 1U);
  EXPECT_EQ(std::memcmp(to_.data(), from_.data(), 64), 0);
}

// What only the peer can execute waits for nothing that it executes before: the lane keeps the order.
TEST_F(LanePairTest, atomics_that_the_peer_executes_are_under_way_together) {
  begin(IBV_QPT_RC);
  to_.fill(0);
  for (uint64_t id = 0; id < link::kLaneResponses; ++id) {
    ASSERT_EQ(a_->fetch_add(id, from_.piece(id * 8, 8), to_.address(), to_.key(), 1), 0);
  }
  b_->take_arrived();
  EXPECT_EQ(a_->sent().size(), link::kLaneResponses);
}

// Memory that is mapped here and memory that is not, in turns: each is reached in its way.
TEST_F(LanePairTest, mapped_and_private_memory_in_turns) {
  if (!link::testing::kernel_reads_other_memory()) {
    GTEST_SKIP() << "skip: process_vm_readv is not to be had";
  }
  begin(IBV_QPT_RC);
  Shareable shared(device_, 64);
  introduce_arenas();
  to_.fill(0);
  std::memset(shared.data(), 0, 64);
  from_.fill(5);
  for (uint64_t id = 0; id < 8; ++id) {
    const bool is_shared = (id / 2) % 2 == 0;
    ASSERT_EQ(
        a_->one_sided(IBV_WR_RDMA_WRITE, id, from_.piece(id * 8, 8),
                      (is_shared ? shared.address() : to_.address()) + id * 8, is_shared ? shared.key() : to_.key()),
        0);
    EXPECT_EQ(a_->sent(), (Ends{{id, IBV_WC_SUCCESS}}));
    EXPECT_EQ(std::memcmp((is_shared ? shared.data() : to_.data()) + id * 8, from_.data() + id * 8, 8), 0);
  }
}

TEST_F(LanePairTest, operations_count_for_both_ends_whoever_does_them) {
  begin(IBV_QPT_RC);
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_WRITE, 1, from_.piece(0, 2049), to_.address(), to_.key()), 0);
  pump();
  // Three packets at a path MTU of 1024; the first has a RETH of 16 bytes.
  EXPECT_EQ(counter(device_, "port_xmit_packets"), 3U);
  EXPECT_EQ(counter(device_, "port_rcv_packets"), 3U);
  EXPECT_EQ(counter(device_, "port_xmit_data"), 3U * 4 + 4 + 513);
  EXPECT_EQ(counter(device_, "rx_write_requests"), 1U);
  ASSERT_EQ(a_->one_sided(IBV_WR_RDMA_READ, 2, from_.piece(0, 2049), to_.address(), to_.key()), 0);
  pump();
  EXPECT_EQ(counter(device_, "port_xmit_packets"), 3U + 1 + 3);
  EXPECT_EQ(counter(device_, "rx_read_requests"), 1U);
  ASSERT_EQ(a_->fetch_add(3, from_.piece(0, 8), (to_.address() + 7) / 8 * 8, to_.key(), 1), 0);
  pump();
  EXPECT_EQ(counter(device_, "port_xmit_packets"), 7U + 2);
  EXPECT_EQ(counter(device_, "port_rcv_packets"), 7U + 2);
  EXPECT_EQ(counter(device_, "rx_atomic_requests"), 1U);
  EXPECT_EQ(counter(device_, "rdma_sends"), 0U);
}

}  // namespace
}  // namespace ringbolt::device
