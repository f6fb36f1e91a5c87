// Memory that processes share (ibv_alloc_buf): what is freed is gone at both ends, and what can't be had there is said.
#include <fstream>
#include <sstream>

#include "deadline.h"
#include "far.h"
#include "limit.h"
#include "pattern.h"

// Of rdma-core 65; the header here may be older.
extern "C" {
struct ibv_buf;
void* ibv_alloc_buf(ibv_pd* pd, size_t size, ibv_buf** buffer);
void ibv_free_buf(ibv_buf* buffer);
}

namespace ringbolt::conformance {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20U;

/// Registered and full of ones, except where a test does otherwise.
struct Buffer {
  Buffer(ibv_pd* pd, size_t length)
      : data(static_cast<uint8_t*>(must(ibv_alloc_buf(pd, length, &handle), "ibv_alloc_buf"))) {
    mr.reset(must(ibv_reg_mr(pd, data, length, kAllAccess), "ibv_reg_mr"));
  }
  ~Buffer() {
    mr.reset();
    free();
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void free() { ibv_free_buf(std::exchange(handle, nullptr)); }
  ibv_sge sge(uint32_t length) const { return {reinterpret_cast<uint64_t>(data), length, mr->lkey}; }

  ibv_buf* handle = nullptr;
  uint8_t* data;
  Mr mr;
};

/// Of shareable memory, or of lanes, as the kernel lists the mappings of the process.
uint64_t mapped_bytes(pid_t pid, const char* name = "ringbolt-arena") {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  uint64_t sum = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(name) != std::string::npos) {
      uint64_t first = 0;
      uint64_t end = 0;
      char dash = 0;
      std::istringstream(line) >> std::hex >> first >> dash >> end;
      sum += end - first;
    }
  }
  return sum;
}

class BufferTest : public testing::TestWithParam<ibv_qp_type> {
 protected:
  BufferTest() : link(peer, options(), kMiB) {}

  static QpOptions options() {
    QpOptions wanted;
    wanted.type = GetParam();
    return wanted;
  }
  /// The completion of the send; the far side has posted a receive for it, or will.
  ibv_wc send(const Buffer& buffer, uint32_t length) {
    must_succeed(SendWr(1, IBV_WR_SEND, {buffer.sge(length)}).post(link.near.qp()), "ibv_post_send");
    return wait_completion(link.near.send_cq());
  }
  void transfer(const Buffer& buffer, uint32_t length) {
    ASSERT_EQ(link.far.post_recv(2, {{0, kMiB}}), 0);
    expect_success(send(buffer, length), 1, IBV_WC_SEND);
    expect_success(link.far.wait_recv(), 2, IBV_WC_RECV);
  }
  /// What the far side maps and opens for the connection itself is there then.
  void meet() { transfer(Buffer(link.near.pd(), 4096), 64); }
  void expect_refusal(const ibv_wc& sent) {
    expect_status(sent, 1, IBV_WC_REM_OP_ERR);
    expect_status(link.far.wait_recv(), 2, IBV_WC_LOC_QP_OP_ERR);
    EXPECT_EQ(link.near.state(), IBV_QPS_ERR);
    EXPECT_EQ(link.far.state(), IBV_QPS_ERR);
  }

  PeerProcess peer;
  Link link;
};
INSTANTIATE_TEST_SUITE_P(All, BufferTest, testing::Values(IBV_QPT_RC, IBV_QPT_UC),
                         [](const auto& parameter) { return type_name(parameter.param); });

TEST_P(BufferTest, freed_memory_is_unmapped_at_both_ends) {
  for (int round = 0; round < 40; ++round) {
    const Buffer buffer(link.near.pd(), 4 * kMiB);
    std::fill_n(buffer.data, 4 * kMiB, static_cast<uint8_t>(round));
    transfer(buffer, kMiB);
  }
  EXPECT_EQ(mapped_bytes(getpid()), 0U);
  EXPECT_TRUE(wait_until([&] { return mapped_bytes(peer.pid()) == 0; })) << mapped_bytes(peer.pid());
}

TEST_P(BufferTest, allocations_in_turn_never_run_out) {
  for (uint32_t round = 0; round < 3000; ++round) {
    const Buffer buffer(link.near.pd(), 4096);
    std::fill_n(buffer.data, 4096, static_cast<uint8_t>(round));
    if (round % 100 == 0) {
      transfer(buffer, 4096);
    }
  }
}

TEST_P(BufferTest, a_message_brings_its_own_bytes_whatever_the_place_was_used_for_before) {
  constexpr uint32_t kLength = 8192;
  for (uint64_t round = 0; round < 20; ++round) {
    const Buffer buffer(link.near.pd(), kLength);
    fill_pattern({buffer.data, kLength}, round);
    transfer(buffer, kLength);
    ASSERT_EQ(link.far.check({{0, kLength}}, kLength, round), "") << round;
    link.far.clear();
  }
}

TEST_P(BufferTest, memory_stays_while_a_region_is_over_it) {
  Buffer buffer(link.near.pd(), kMiB);
  buffer.free();
  std::fill_n(buffer.data, kMiB, uint8_t{7});
  transfer(buffer, kMiB);
  EXPECT_EQ(mapped_bytes(getpid()), kMiB);
  buffer.mr.reset();
  EXPECT_EQ(mapped_bytes(getpid()), 0U);
  EXPECT_TRUE(wait_until([&] { return mapped_bytes(peer.pid()) == 0; }));
}

// The program must not do that; but what it has sent is never read from other memory.
TEST_P(BufferTest, a_message_whose_memory_was_freed_is_refused_at_both_ends) {
  meet();  // so that the next one leaves at once
  {
    const Buffer buffer(link.near.pd(), kMiB);
    ASSERT_EQ(SendWr(1, IBV_WR_SEND, {buffer.sge(kMiB)}).post(link.near.qp()), 0);
  }
  ASSERT_TRUE(wait_until([&] { return mapped_bytes(peer.pid()) == 0; }));
  const Buffer another(link.near.pd(), kMiB);
  ASSERT_EQ(link.far.post_recv(2, {{0, kMiB}}), 0);
  expect_refusal(wait_completion(link.near.send_cq()));
}

TEST_P(BufferTest, memory_that_can_not_be_mapped_is_refused_at_both_ends) {
  meet();
  const Limit limit(peer.pid(), RLIMIT_AS, address_space_bytes(peer.pid()) + 8 * kMiB);
  const Buffer buffer(link.near.pd(), 256 * kMiB);
  ASSERT_EQ(link.far.post_recv(2, {{0, kMiB}}), 0);
  expect_refusal(send(buffer, kMiB));
}

TEST_P(BufferTest, memory_whose_descriptor_finds_no_place_is_refused_at_both_ends) {
  meet();
  const Limit limit(peer.pid(), RLIMIT_NOFILE, next_descriptor(peer.pid()));
  const Buffer buffer(link.near.pd(), kMiB);
  ASSERT_EQ(link.far.post_recv(2, {{0, kMiB}}), 0);
  expect_refusal(send(buffer, kMiB));
}

TEST_P(BufferTest, what_can_not_be_mapped_harms_nothing_else) {
  meet();
  const Limit limit(peer.pid(), RLIMIT_AS, address_space_bytes(peer.pid()) + 8 * kMiB);
  const Buffer large(link.near.pd(), 256 * kMiB);
  transfer(large, 64);  // short messages go another way
  const Buffer small(link.near.pd(), kMiB);
  transfer(small, kMiB);
}

/// The far side is connected when the limit comes, the near one is not: its lane is what finds no place there.
class LaneLimitTest : public testing::TestWithParam<ibv_qp_type> {
 protected:
  LaneLimitTest() : device(open_device()), near(device, options()), memory(near.pd(), 4096), far(peer) {
    far.open(options(), 4096);
    must_succeed(near.to_init(), "ibv_modify_qp(INIT)");
    const uint64_t own_table = mapped_bytes(peer.pid(), kTable);
    far.connect(near.address());
    must_succeed(far.post_recv(2, {{0, 4096}}), "ibv_post_recv");
    // Its lane has come here, and our table there: the two processes know each other, and what fails now is the lane
    // alone.
    EXPECT_TRUE(wait_until([] { return mapped_bytes(getpid(), "ringbolt-lane") != 0; }));
    EXPECT_TRUE(wait_until([&] { return mapped_bytes(peer.pid(), kTable) > own_table; }));
  }
  static QpOptions options() {
    QpOptions wanted;
    wanted.type = GetParam();
    return wanted;
  }
  void expect_failure() {
    ASSERT_EQ(near.to_rtr(far.address()), 0);
    ASSERT_EQ(post_recv(near.qp(), 3, {memory.sge(0, 64)}), 0);
    expect_status(wait_completion(near.recv_cq()), 3, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(near.state(), IBV_QPS_ERR);
    EXPECT_EQ(wait_async_event(device).event_type, IBV_EVENT_QP_FATAL);
    expect_status(far.wait_recv(), 2, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(far.state(), IBV_QPS_ERR);
    EXPECT_EQ(far.wait_event(), IBV_EVENT_QP_FATAL);
  }

  static constexpr const char* kTable = "ringbolt-regions";

  PeerProcess peer;
  Device device;
  Endpoint near;
  Region memory;
  Far far;
};
INSTANTIATE_TEST_SUITE_P(All, LaneLimitTest, testing::Values(IBV_QPT_RC, IBV_QPT_UC),
                         [](const auto& parameter) { return type_name(parameter.param); });

TEST_P(LaneLimitTest, lane_that_can_not_be_mapped_ends_both_queue_pairs) {
  const Limit limit(peer.pid(), RLIMIT_AS, address_space_bytes(peer.pid()) + 128 * 1024);  // half a lane
  expect_failure();
}

TEST_P(LaneLimitTest, lane_whose_descriptor_finds_no_place_ends_both_queue_pairs) {
  const Limit limit(peer.pid(), RLIMIT_NOFILE, next_descriptor(peer.pid()));
  expect_failure();
}

// The table of regions takes 16 MiB of address space per peer; who has none leaves the work to the peer. That of
// completion queues takes 11 MiB (docs/formats/wake-table.md); without it nobody can be told of anything.
constexpr uint64_t kWakeTableBytes = 11'667'584;

TEST(Limits, without_the_table_of_completion_queues_there_is_no_lane) {
  PeerProcess peer;
  const Device device = open_device();
  Endpoint near(device, {});
  Far far(peer);
  far.open({}, 4096);
  must_succeed(near.to_init(), "ibv_modify_qp(INIT)");
  const Limit limit(peer.pid(), RLIMIT_AS, address_space_bytes(peer.pid()) + kMiB);
  ASSERT_EQ(near.to_rtr(far.address()), 0);
  EXPECT_EQ(wait_async_event(device).event_type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(near.state(), IBV_QPS_ERR);
}

TEST(Limits, one_sided_operations_work_without_the_table_of_regions) {
  PeerProcess peer;
  const Device device = open_device();
  Endpoint near(device, {});
  Region memory(near.pd(), 4096);
  Far far(peer);
  far.open({}, 4096);
  far.fill({{0, 4096}}, 5);
  const Limit limit(peer.pid(), RLIMIT_AS, address_space_bytes(peer.pid()) + kWakeTableBytes + 2 * kMiB);
  near.connect(far.address());
  far.connect(near.address());
  ASSERT_EQ(far.post_send(1, IBV_WR_RDMA_WRITE, {{0, 4096}}, IBV_SEND_SIGNALED, memory.address(), memory.rkey()), 0);
  expect_success(far.wait_send(), 1, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(memory.check(std::vector<Piece>{{0, 4096}}, 4096, 5), "");
  far.clear();
  ASSERT_EQ(far.post_send(2, IBV_WR_RDMA_READ, {{0, 4096}}, IBV_SEND_SIGNALED, memory.address(), memory.rkey()), 0);
  expect_success(far.wait_send(), 2, IBV_WC_RDMA_READ);
  EXPECT_EQ(far.check({{0, 4096}}, 4096, 5), "");
  ASSERT_EQ(far.post_send(3, IBV_WR_RDMA_WRITE, {{0, 64}}, IBV_SEND_SIGNALED, memory.address(), memory.rkey() ^ 0x100U),
            0);
  EXPECT_EQ(far.wait_send().status, IBV_WC_REM_ACCESS_ERR);
}

}  // namespace
}  // namespace ringbolt::conformance
