#include "device/work_request.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ringbolt::device {
namespace {

ibv_send_wr request(ibv_wr_opcode opcode) {
  ibv_send_wr wr;
  std::memset(&wr, 0xa5, sizeof wr);  // what programs leave uninitialised
  wr.opcode = opcode;
  wr.send_flags = 0;
  wr.num_sge = 0;
  wr.sg_list = nullptr;
  return wr;
}

TEST(WorkRequest, pieces_add_up_and_never_wrap) {
  ibv_sge pieces[] = {{0, 0xffffffffU, 0}, {0, 2, 0}, {0, 7, 0}};
  ibv_send_wr wr = request(IBV_WR_SEND);
  EXPECT_EQ(total_length(wr), 0U);
  wr.sg_list = pieces + 1;
  wr.num_sge = 2;
  EXPECT_EQ(total_length(wr), 9U);
  wr.sg_list = pieces;
  wr.num_sge = 3;
  EXPECT_EQ(total_length(wr), UINT32_MAX);
}

TEST(WorkRequest, unknown_opcodes_are_of_no_queue_pair) {
  EXPECT_EQ(operation_of(static_cast<ibv_wr_opcode>(IBV_WR_SEND_WITH_INV + 1)).types, 0U);
  EXPECT_EQ(operation_of(IBV_WR_RDMA_READ).types, kOnRc);
  EXPECT_FALSE(operation_of(IBV_WR_RDMA_READ).carries_data);
}

TEST(WorkRequest, takes_what_its_opcode_defines) {
  ibv_send_wr wr = request(IBV_WR_ATOMIC_CMP_AND_SWP);
  wr.wr.atomic = {0x1000, 1, 2, 3};
  wr.send_flags = IBV_SEND_FENCE;
  const SendRequest swap = describe(wr, IBV_QPT_RC, 0);
  EXPECT_EQ(swap.remote_address, 0x1000U);
  EXPECT_EQ(swap.compare_or_add, 1U);
  EXPECT_EQ(swap.swap, 2U);
  EXPECT_EQ(swap.key, 3U);
  EXPECT_EQ(swap.immediate, 0U);
  EXPECT_TRUE(swap.is_fenced);
  EXPECT_FALSE(swap.is_inline);
  wr = request(IBV_WR_RDMA_WRITE_WITH_IMM);
  wr.imm_data = 9;
  wr.wr.rdma = {0x2000, 4};
  const SendRequest write = describe(wr, IBV_QPT_UC, 0);
  EXPECT_EQ(write.immediate, 9U);
  EXPECT_EQ(write.remote_address, 0x2000U);
  EXPECT_EQ(write.key, 4U);
}

}  // namespace
}  // namespace ringbolt::device
