// Keys, bounds, access rights and protection domains: who may touch what, and the status of whom
// may not. Statuses after the InfiniBand specification, volume 1, sections 9.7.5.2, 10.7.3 and
// 11.6.2.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "far.h"

namespace ringbolt::conformance {
namespace {

constexpr uint64_t kRegion = 8192;
constexpr unsigned kLocal = IBV_ACCESS_LOCAL_WRITE;

struct RemoteOperation {
  ibv_wr_opcode opcode;
  const char* name;
  unsigned needed_access;
};
void PrintTo(const RemoteOperation& operation, std::ostream* out) { *out << operation.name; }

constexpr RemoteOperation kOperations[] = {
    {IBV_WR_RDMA_WRITE, "WRITE", IBV_ACCESS_REMOTE_WRITE},
    {IBV_WR_RDMA_WRITE_WITH_IMM, "WRITE_IMM", IBV_ACCESS_REMOTE_WRITE},
    {IBV_WR_RDMA_READ, "READ", IBV_ACCESS_REMOTE_READ},
    {IBV_WR_ATOMIC_CMP_AND_SWP, "CAS", IBV_ACCESS_REMOTE_ATOMIC},
    {IBV_WR_ATOMIC_FETCH_AND_ADD, "FAA", IBV_ACCESS_REMOTE_ATOMIC},
};

bool is_atomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

using Case = std::tuple<RemoteOperation, Placement>;

class RemoteAccessTest : public testing::TestWithParam<Case> {
 protected:
  static const RemoteOperation& operation() { return std::get<0>(GetParam()); }
  static Placement placement() { return std::get<1>(GetParam()); }

  static void post(Link& link, uint64_t address, uint32_t rkey, uint32_t length = 8) {
    if (operation().opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
      // With no receive posted the answer could be "not ready" instead of the key's error.
      ASSERT_EQ(link.far.post_recv(900, {}), 0);
    }
    SendWr wr(11, operation().opcode, {link.memory.sge(0, length)});
    if (is_atomic(operation().opcode)) {
      wr.atomic(address, rkey, 1, 2);
    } else {
      wr.remote(address, rkey);
    }
    ASSERT_EQ(wr.post(link.near.qp()), 0);
  }

  /// The requester learns of it, both queue pairs are broken, and no byte was written.
  static void expect_refused(Link& link, std::vector<ibv_wc_status> accepted) {
    const ibv_wc wc = wait_completion(link.near.send_cq());
    EXPECT_EQ(wc.wr_id, 11u);
    EXPECT_NE(std::find(accepted.begin(), accepted.end(), wc.status), accepted.end())
        << describe(wc);
    EXPECT_EQ(link.near.state(), IBV_QPS_ERR);
    EXPECT_EQ(link.far.check({}, 0, 0), "");
    EXPECT_EQ(link.memory.check({}, 0, 0), "");
    ASSERT_EQ(SendWr(12, IBV_WR_SEND, {link.memory.sge(0, 1)}).post(link.near.qp()), 0);
    expect_status(wait_completion(link.near.send_cq()), 12, IBV_WC_WR_FLUSH_ERR);
  }
};

TEST_P(RemoteAccessTest, wrong_key_is_a_remote_access_error) {
  Link link(placement(), {}, kRegion);
  post(link, link.far.region_address(), link.far.rkey() ^ 0x5a5a00);
  expect_refused(link, {IBV_WC_REM_ACCESS_ERR});
  EXPECT_EQ(link.far.wait_event(), IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(link.far.state(), IBV_QPS_ERR);
}

TEST_P(RemoteAccessTest, key_zero_is_a_remote_access_error) {
  Link link(placement(), {}, kRegion);
  post(link, link.far.region_address(), 0);
  expect_refused(link, {IBV_WC_REM_ACCESS_ERR});
}

TEST_P(RemoteAccessTest, past_the_end_is_a_remote_access_error) {
  Link link(placement(), {}, kRegion);
  post(link, link.far.region_address(kRegion), link.far.rkey());
  expect_refused(link, {IBV_WC_REM_ACCESS_ERR});
}

TEST_P(RemoteAccessTest, across_the_end_is_a_remote_access_error) {
  // Registered length that is no multiple of 8, so that an aligned word can cross the end.
  Link link(placement(), {}, {}, kRegion - 4);
  post(link, link.far.region_address(kRegion - 8), link.far.rkey());
  expect_refused(link, {IBV_WC_REM_ACCESS_ERR});
}

TEST_P(RemoteAccessTest, before_the_start_is_a_remote_access_error) {
  Link link(placement(), {}, kRegion);
  post(link, link.far.region_address() - 8, link.far.rkey());
  expect_refused(link, {IBV_WC_REM_ACCESS_ERR});
}

TEST_P(RemoteAccessTest, address_that_wraps_is_a_remote_access_error) {
  Link link(placement(), {}, kRegion);
  post(link, ~0ull - 7, link.far.rkey());
  expect_refused(link, {IBV_WC_REM_ACCESS_ERR});
}

TEST_P(RemoteAccessTest, region_without_the_right_is_a_remote_access_error) {
  const unsigned others = kAllAccess & ~operation().needed_access;
  Link link(placement(), {}, {}, kRegion, others);
  post(link, link.far.region_address(), link.far.rkey());
  expect_refused(link, {IBV_WC_REM_ACCESS_ERR});
}

TEST_P(RemoteAccessTest, region_with_the_right_alone_is_enough) {
  Link link(placement(), {}, {}, kRegion, kLocal | operation().needed_access);
  post(link, link.far.region_address(), link.far.rkey());
  EXPECT_EQ(wait_completion(link.near.send_cq()).status, IBV_WC_SUCCESS);
}

TEST_P(RemoteAccessTest, queue_pair_without_the_right_refuses) {
  QpOptions closed;
  closed.access = kAllAccess & ~operation().needed_access;
  Link link(placement(), {}, closed, kRegion);
  post(link, link.far.region_address(), link.far.rkey());
  // The specification's answer is "invalid request"; adapters also answer "remote access".
  expect_refused(link, {IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR});
}

TEST_P(RemoteAccessTest, deregistered_region_is_a_remote_access_error) {
  Link link(placement(), {}, kRegion);
  post(link, link.far.region_address(), link.far.rkey());
  EXPECT_EQ(wait_completion(link.near.send_cq()).status, IBV_WC_SUCCESS);
  link.far.clear();
  link.memory.clear();
  link.far.deregister();
  post(link, link.far.region_address(), link.far.rkey());
  expect_refused(link, {IBV_WC_REM_ACCESS_ERR});
}

std::string remote_name(const testing::TestParamInfo<Case>& info) {
  return std::string(std::get<0>(info.param).name) + "_" +
         placement_name(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(All, RemoteAccessTest,
                         testing::Combine(testing::ValuesIn(kOperations),
                                          testing::ValuesIn(kPlacements)),
                         remote_name);

// A program that unmaps memory without deregistering it has a bug, but its peers are not to be the ones who end it.
class LostMemoryTest : public testing::TestWithParam<RemoteOperation> {};

INSTANTIATE_TEST_SUITE_P(All, LostMemoryTest, testing::ValuesIn(kOperations),
                         testing::PrintToStringParamName());

TEST_P(LostMemoryTest, is_a_remote_access_error) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const Device device = open_device();
  Endpoint near(device, {}), far(device, {});
  Region from(near.pd(), 64);
  // Taken away, not unmapped: nothing else can come to lie there meanwhile.
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const Mr mr = register_memory(far.pd(), memory, page, kAllAccess);
  connect(near, far);
  ASSERT_EQ(mprotect(memory, page, PROT_NONE), 0);
  ASSERT_EQ(post_recv(far.qp(), 900, {}), 0);
  SendWr wr(11, GetParam().opcode, {from.sge(0, 8)});
  const auto address = reinterpret_cast<uint64_t>(memory);
  if (is_atomic(GetParam().opcode)) {
    wr.atomic(address, mr->rkey, 1, 2);
  } else {
    wr.remote(address, mr->rkey);
  }
  ASSERT_EQ(wr.post(near.qp()), 0);
  expect_status(wait_completion(near.send_cq()), 11, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(wait_async_event(device).event_type, IBV_EVENT_QP_ACCESS_ERR);
  munmap(memory, page);
}

class PlacementTest : public testing::TestWithParam<Placement> {};

INSTANTIATE_TEST_SUITE_P(All, PlacementTest,
                         testing::ValuesIn(kPlacements), parameter_name);

// C9-88 and o9-..: the key of an operation without bytes is not looked at.
TEST_P(PlacementTest, zero_bytes_need_no_key) {
  Link link(GetParam(), {}, kRegion);
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    ASSERT_EQ(SendWr(5, opcode, {}).remote(0, 0xdeadbeef).post(link.near.qp()), 0);
    EXPECT_EQ(wait_completion(link.near.send_cq()).status, IBV_WC_SUCCESS);
  }
}

TEST_P(PlacementTest, only_the_violating_message_of_a_burst_is_refused) {
  Link link(GetParam(), {}, kRegion);
  link.memory.fill(std::vector<Piece>{{0, 64}}, 3);
  for (uint64_t i = 0; i < 5; ++i) {
    SendWr wr(i, IBV_WR_RDMA_WRITE, {link.memory.sge(0, 64)});
    wr.remote(link.far.region_address(i * 256), link.far.rkey() ^ (i == 2 ? 0x100u : 0u));
    ASSERT_EQ(wr.post(link.near.qp()), 0);
  }
  const std::vector<ibv_wc> done = wait_completions(link.near.send_cq(), 5);
  const ibv_wc_status expected[] = {IBV_WC_SUCCESS, IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR,
                                    IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR};
  for (uint64_t i = 0; i < 5; ++i) {
    expect_status(done[i], i, expected[i]);
  }
  EXPECT_NE(link.far.word(256), 0xa5a5a5a5a5a5a5a5ull);
  EXPECT_EQ(link.far.word(512), 0xa5a5a5a5a5a5a5a5ull);
  EXPECT_EQ(link.far.word(768), 0xa5a5a5a5a5a5a5a5ull);
}

// An unconnected responder answers nothing: the requester's success says only that it was sent.
TEST_P(PlacementTest, unreliable_write_with_a_wrong_key_is_dropped) {
  QpOptions options;
  options.type = IBV_QPT_UC;
  Link link(GetParam(), options, kRegion);
  SendWr bad(1, IBV_WR_RDMA_WRITE, {link.memory.sge(0, 8)});
  ASSERT_EQ(bad.remote(link.far.region_address(), link.far.rkey() ^ 0x100).post(link.near.qp()), 0);
  expect_success(wait_completion(link.near.send_cq()), 1, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(link.far.check({}, 0, 0), "");
  EXPECT_EQ(link.near.state(), IBV_QPS_RTS);
}

TEST_P(PlacementTest, send_from_a_wrong_local_key_is_a_local_protection_error) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
    SCOPED_TRACE(type_name(type));
    QpOptions options;
    options.type = type;
    Link link(GetParam(), options, kRegion);
    ASSERT_EQ(link.far.post_recv(70, {{0, 64}}), 0);
    ibv_sge sge = link.memory.sge(0, 8);
    sge.lkey ^= 0x100;
    ASSERT_EQ(SendWr(1, IBV_WR_SEND, {sge}).post(link.near.qp()), 0);
    ASSERT_EQ(SendWr(2, IBV_WR_SEND, {link.memory.sge(0, 8)}, 0).post(link.near.qp()), 0);
    expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_LOC_PROT_ERR);
    expect_status(wait_completion(link.near.send_cq()), 2, IBV_WC_WR_FLUSH_ERR);
    // Unreliable types stop their send queue only (SQE); an implementation may go further.
    EXPECT_TRUE(link.near.state() == IBV_QPS_ERR ||
                (type == IBV_QPT_UC && link.near.state() == IBV_QPS_SQE));
    EXPECT_EQ(link.far.check({}, 0, 0), "");
  }
}

TEST_P(PlacementTest, local_bounds_are_checked_piece_by_piece) {
  for (const auto& [offset, length] :
       {std::pair<uint64_t, uint32_t>{kRegion - 4, 8}, {kRegion, 1}, {0, kRegion + 1}}) {
    Link link(GetParam(), {}, kRegion);
    ASSERT_EQ(link.far.post_recv(70, {{0, 8192}}), 0);
    const std::vector<ibv_sge> sges = {link.memory.sge(0, 8), link.memory.sge(offset, length)};
    ASSERT_EQ(SendWr(1, IBV_WR_SEND, sges).post(link.near.qp()), 0);
    expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_LOC_PROT_ERR);
  }
}

TEST_P(PlacementTest, read_into_memory_without_local_write_is_a_local_protection_error) {
  Link link(GetParam(), {}, kRegion);
  Region constant(link.near.pd(), 64, IBV_ACCESS_REMOTE_READ);
  SendWr wr(1, IBV_WR_RDMA_READ, {constant.sge(0, 8)});
  ASSERT_EQ(wr.remote(link.far.region_address(), link.far.rkey()).post(link.near.qp()), 0);
  expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(constant.check({}, 0, 0), "");
}

TEST_P(PlacementTest, send_from_memory_without_any_access_works) {
  Link link(GetParam(), {}, kRegion);
  Region constant(link.near.pd(), 64, 0);
  constant.fill(std::vector<Piece>{{0, 8}}, 9);
  ASSERT_EQ(link.far.post_recv(70, {{0, 64}}), 0);
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {constant.sge(0, 8)}).post(link.near.qp()), 0);
  expect_success(wait_completion(link.near.send_cq()), 1, IBV_WC_SEND);
  expect_success(link.far.wait_recv(), 70, IBV_WC_RECV);
  EXPECT_EQ(link.far.check({{0, 8}}, 8, 9), "");
}

TEST_P(PlacementTest, region_of_another_domain_is_a_local_protection_error) {
  Link link(GetParam(), {}, kRegion);
  const Pd other = make_pd(link.device);
  Region foreign(other.get(), 64);
  ASSERT_EQ(link.far.post_recv(70, {{0, 64}}), 0);
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {foreign.sge(0, 8)}).post(link.near.qp()), 0);
  expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_LOC_PROT_ERR);
}

TEST(Access, remote_region_of_another_domain_is_a_remote_access_error) {
  const Device device = open_device();
  Endpoint a(device, {});
  Endpoint b(device, {});
  connect(a, b);
  Region source(a.pd(), 64);
  // Neither a's nor b's: a third domain on b's device.
  const Pd third = make_pd(device);
  Region target(third.get(), 64);
  SendWr wr(1, IBV_WR_RDMA_WRITE, {source.sge(0, 8)});
  ASSERT_EQ(wr.remote(target.address(), target.rkey()).post(a.qp()), 0);
  expect_status(wait_completion(a.send_cq()), 1, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(target.check({}, 0, 0), "");
}

// What happens when the receiver's own list is bad: it learns why, the sender only that.
TEST(Access, receive_into_a_bad_key_fails_on_both_sides) {
  const Device device = open_device();
  Endpoint a(device, {});
  Endpoint b(device, {});
  connect(a, b);
  Region source(a.pd(), 64);
  Region target(b.pd(), 64);
  ibv_sge bad = target.sge(0, 64);
  bad.lkey ^= 0x100;
  ASSERT_EQ(post_recv(b.qp(), 1, {bad}), 0);
  ASSERT_EQ(post_recv(b.qp(), 2, {target.sge(0, 64)}), 0);
  ASSERT_EQ(SendWr(3, IBV_WR_SEND, {source.sge(0, 8)}).post(a.qp()), 0);
  expect_status(wait_completion(b.recv_cq()), 1, IBV_WC_LOC_PROT_ERR);
  expect_status(wait_completion(b.recv_cq()), 2, IBV_WC_WR_FLUSH_ERR);
  expect_status(wait_completion(a.send_cq()), 3, IBV_WC_REM_OP_ERR);
  EXPECT_EQ(a.state(), IBV_QPS_ERR);
  EXPECT_EQ(b.state(), IBV_QPS_ERR);
  EXPECT_EQ(target.check({}, 0, 0), "");
}

TEST(Access, receive_into_memory_without_local_write_fails_on_both_sides) {
  const Device device = open_device();
  Endpoint a(device, {});
  Endpoint b(device, {});
  connect(a, b);
  Region source(a.pd(), 64);
  Region constant(b.pd(), 64, IBV_ACCESS_REMOTE_READ);
  ASSERT_EQ(post_recv(b.qp(), 1, {constant.sge(0, 64)}), 0);
  ASSERT_EQ(SendWr(3, IBV_WR_SEND, {source.sge(0, 8)}).post(a.qp()), 0);
  expect_status(wait_completion(b.recv_cq()), 1, IBV_WC_LOC_PROT_ERR);
  expect_status(wait_completion(a.send_cq()), 3, IBV_WC_REM_OP_ERR);
  EXPECT_EQ(constant.check({}, 0, 0), "");
}

class TooSmallTest : public testing::TestWithParam<std::tuple<uint32_t, Placement>> {};

TEST_P(TooSmallTest, reliable_send_into_too_small_a_receive_fails_on_both_sides) {
  const auto& [size, placement] = GetParam();
  Link link(placement, {}, size + 4096);
  ASSERT_EQ(link.far.post_recv(1, split(size - 1, 3)), 0);
  ASSERT_EQ(link.far.post_recv(2, {{0, 64}}), 0);
  ASSERT_EQ(SendWr(3, IBV_WR_SEND, {link.memory.sge(0, size)}).post(link.near.qp()), 0);
  expect_status(wait_completion(link.near.send_cq()), 3, IBV_WC_REM_INV_REQ_ERR);
  expect_status(link.far.wait_recv(), 1, IBV_WC_LOC_LEN_ERR);
  expect_status(link.far.wait_recv(), 2, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(link.near.state(), IBV_QPS_ERR);
  EXPECT_EQ(link.far.state(), IBV_QPS_ERR);
}

TEST_P(TooSmallTest, unreliable_send_into_too_small_a_receive_fails_there_only) {
  const auto& [size, placement] = GetParam();
  QpOptions options;
  options.type = IBV_QPT_UC;
  Link link(placement, options, size + 4096);
  ASSERT_EQ(link.far.post_recv(1, split(size - 1, 3)), 0);
  ASSERT_EQ(SendWr(3, IBV_WR_SEND, {link.memory.sge(0, size)}).post(link.near.qp()), 0);
  expect_success(wait_completion(link.near.send_cq()), 3, IBV_WC_SEND);
  expect_status(link.far.wait_recv(), 1, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(link.near.state(), IBV_QPS_RTS);
}

INSTANTIATE_TEST_SUITE_P(All, TooSmallTest,
                         testing::Combine(testing::Values(1u, 64u, 4097u, 65536u, 1048579u),
                                          testing::ValuesIn(kPlacements)));

}  // namespace
}  // namespace ringbolt::conformance
