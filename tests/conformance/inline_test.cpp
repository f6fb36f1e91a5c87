// Inline data: granted sizes, both sides of the edge, and independence from the caller's buffer.
#include "far.h"

namespace ringbolt::conformance {
namespace {

constexpr uint32_t kAsked = 256;

QpOptions inline_options(ibv_qp_type type = IBV_QPT_RC) {
  QpOptions options;
  options.type = type;
  options.inline_bytes = kAsked;
  return options;
}

class InlineTest : public testing::TestWithParam<Placement> {};
INSTANTIATE_TEST_SUITE_P(All, InlineTest, testing::ValuesIn(kPlacements), parameter_name);

TEST_P(InlineTest, every_size_up_to_the_granted_one_arrives) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
    Link link(GetParam(), inline_options(type), 4096);
    const uint32_t limit = link.near.cap().max_inline_data;
    ASSERT_GE(limit, kAsked);
    for (const uint32_t size : {0u, 1u, 7u, 8u, 63u, 64u, 65u, limit - 1, limit}) {
      SCOPED_TRACE(std::string(type_name(type)) + " " + std::to_string(size));
      for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE}) {
        const std::vector<Piece> target = {{100, size}};
        link.far.clear();
        if (opcode == IBV_WR_SEND) {
          ASSERT_EQ(link.far.post_recv(size, target), 0);
        }
        link.memory.fill(std::vector<Piece>{{0, size}}, size);
        ibv_sge sge = link.memory.sge(0, size);
        sge.lkey = 0xbad;  // inline data needs no key
        SendWr wr(size, opcode, {sge}, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
        wr.remote(link.far.region_address(100), link.far.rkey());
        ASSERT_EQ(wr.post(link.near.qp()), 0);
        link.memory.clear();  // the buffer belongs to the caller again
        EXPECT_EQ(wait_completion(link.near.send_cq()).status, IBV_WC_SUCCESS);
        if (opcode == IBV_WR_SEND) {
          EXPECT_EQ(link.far.wait_recv().byte_len, size);
        }
        const bool may_be_on_its_way = type == IBV_QPT_UC && opcode == IBV_WR_RDMA_WRITE;
        EXPECT_EQ(may_be_on_its_way ? link.far.check_soon(target, size, size) : link.far.check(target, size, size), "");
      }
    }
  }
}

TEST_P(InlineTest, pieces_are_gathered) {
  Link link(GetParam(), inline_options(), 4096);
  const std::vector<Piece> pieces = split(200, 16);
  link.memory.fill(pieces, 4);
  ASSERT_EQ(link.far.post_recv(1, split(200, 3)), 0);
  SendWr wr(1, IBV_WR_SEND, link.memory.sges(pieces), IBV_SEND_INLINE | IBV_SEND_SIGNALED);
  ASSERT_EQ(wr.post(link.near.qp()), 0);
  link.memory.clear();
  expect_success(wait_completion(link.near.send_cq()), 1, IBV_WC_SEND);
  EXPECT_EQ(link.far.wait_recv().byte_len, 200u);
  EXPECT_EQ(link.far.check(split(200, 3), 200, 4), "");
}

TEST_P(InlineTest, inline_send_waits_for_its_receive) {
  Link link(GetParam(), inline_options(), 4096);
  for (uint64_t i = 0; i < 10; ++i) {
    link.memory.fill(std::vector<Piece>{{0, 32}}, i);
    SendWr wr(i, IBV_WR_SEND, {link.memory.sge(0, 32)}, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
    ASSERT_EQ(wr.post(link.near.qp()), 0);
  }
  link.memory.clear();
  for (uint64_t i = 0; i < 10; ++i) {
    link.far.clear();
    ASSERT_EQ(link.far.post_recv(i, {{8, 32}}), 0);
    expect_success(link.far.wait_recv(), i, IBV_WC_RECV);
    EXPECT_EQ(link.far.check({{8, 32}}, 32, i), "");
    expect_success(wait_completion(link.near.send_cq()), i, IBV_WC_SEND);
  }
}

TEST(Inline, one_byte_too_many_is_refused) {
  const Device device = open_device();
  Endpoint a(device, inline_options()), b(device, inline_options());
  connect(a, b);
  Region memory(a.pd(), 8192);
  const uint32_t limit = a.cap().max_inline_data;
  const unsigned flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
  EXPECT_EQ(SendWr(1, IBV_WR_SEND, {memory.sge(0, limit + 1)}, flags).post(a.qp()), EINVAL);
  const std::vector<ibv_sge> two = {memory.sge(0, limit), memory.sge(0, 1)};
  EXPECT_EQ(SendWr(1, IBV_WR_SEND, two, flags).post(a.qp()), EINVAL);
  // Lengths whose sum wraps around 32 bits.
  const std::vector<ibv_sge> wrapping = {memory.sge(0, 0x80000000), memory.sge(0, 0x80000001)};
  EXPECT_EQ(SendWr(1, IBV_WR_SEND, wrapping, flags).post(a.qp()), EINVAL);
  EXPECT_TRUE(is_empty(a.send_cq()));
}

TEST(Inline, more_than_the_device_can_is_refused_at_creation) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const Cq cq = make_cq(device, 16);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq.get();
  init.qp_type = IBV_QPT_RC;
  init.cap = {1, 1, 1, 1, 1u << 30};
  EXPECT_EQ(ibv_create_qp(pd.get(), &init), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace ringbolt::conformance
