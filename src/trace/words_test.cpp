#include "trace/words.h"

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

namespace ringbolt::trace {
namespace {

TEST(TraceWords, names_are_those_of_the_verbs) {
  EXPECT_EQ(send_opcode_name(IBV_WR_SEND), "IBV_WR_SEND");
  EXPECT_EQ(send_opcode_name(IBV_WR_RDMA_WRITE_WITH_IMM), "IBV_WR_RDMA_WRITE_WITH_IMM");
  EXPECT_EQ(send_opcode_name(IBV_WR_ATOMIC_FETCH_AND_ADD), "IBV_WR_ATOMIC_FETCH_AND_ADD");
  EXPECT_EQ(send_opcode_name(IBV_WR_SEND_WITH_INV), "IBV_WR_SEND_WITH_INV");
  EXPECT_EQ(send_opcode_name(200), "opcode 200");
  EXPECT_EQ(completion_opcode_name(IBV_WC_LOCAL_INV), "IBV_WC_LOCAL_INV");
  EXPECT_EQ(completion_opcode_name(static_cast<uint8_t>(IBV_WC_RECV_RDMA_WITH_IMM)), "IBV_WC_RECV_RDMA_WITH_IMM");
  EXPECT_EQ(status_name(IBV_WC_GENERAL_ERR), "IBV_WC_GENERAL_ERR");
  EXPECT_EQ(status_name(IBV_WC_RNR_RETRY_EXC_ERR), "IBV_WC_RNR_RETRY_EXC_ERR");
  EXPECT_EQ(status_name(IBV_WC_REM_ACCESS_ERR), "IBV_WC_REM_ACCESS_ERR");
  EXPECT_EQ(state_name(IBV_QPS_ERR), "ERR");
  EXPECT_EQ(state_name(IBV_QPS_RTS), "RTS");
  EXPECT_EQ(async_event_name(IBV_EVENT_GID_CHANGE), "IBV_EVENT_GID_CHANGE");
  EXPECT_EQ(async_event_name(IBV_EVENT_QP_LAST_WQE_REACHED), "IBV_EVENT_QP_LAST_WQE_REACHED");
  EXPECT_EQ(packet_name(0x04), "RC SEND only");
  EXPECT_EQ(packet_name(0x11), "RC ACK");
  EXPECT_EQ(packet_name(0x64), "UD SEND only");
}

TEST(TraceWords, every_kind_has_a_name) {
  for (uint8_t kind = 1; kind < kKinds; ++kind) {
    Record record;
    record.kind = static_cast<Kind>(kind);
    EXPECT_NE(event_name(record), "nothing") << int{kind};
    EXPECT_FALSE(words_of(record).empty());
  }
}

TEST(TraceWords, details_say_what_is_known) {
  Record record;
  record.kind = Kind::post_send;
  record.code = IBV_WR_RDMA_WRITE;
  record.wr_id = 7;
  record.bytes = 100;
  record.flags = kSignaled | kInline;
  EXPECT_EQ(words_of(record), "post IBV_WR_RDMA_WRITE: wr_id 0x7, 100 bytes, signaled, inline");
  record.kind = Kind::completion_polled;
  record.code = static_cast<uint8_t>(IBV_WC_RECV);
  EXPECT_EQ(words_of(record), "polled IBV_WC_RECV: wr_id 0x7, 100 bytes");
  record.status = IBV_WC_WR_FLUSH_ERR;
  EXPECT_EQ(words_of(record), "polled IBV_WC_RECV: wr_id 0x7, IBV_WC_WR_FLUSH_ERR");
  record.kind = Kind::fault;
  record.code = kFaultOfPeers;
  record.number = 12;
  record.flags = kLost | kCopied;
  EXPECT_EQ(words_of(record), "FAULT: packet 12: lost, doubled");
}

TEST(TraceWords, a_queue_pair_is_concerned_by_what_it_uses) {
  struct {
    uint32_t send_queue = 5, receive_queue = 6, shared_queue = 7, peer_qpn = 0x8001;
  } const entry;
  const auto is_of = [&](Kind kind, uint32_t object, uint8_t code = 0) {
    Record record;
    record.kind = kind;
    record.object = object;
    record.code = code;
    return concerns(record, 0x4001, &entry);
  };
  EXPECT_TRUE(is_of(Kind::post_send, 0x4001));
  EXPECT_FALSE(is_of(Kind::post_send, 0x8001));
  EXPECT_TRUE(is_of(Kind::armed, 6));
  EXPECT_FALSE(is_of(Kind::armed, 7));
  EXPECT_TRUE(is_of(Kind::post_shared, 7));
  EXPECT_TRUE(is_of(Kind::refused, 7, 2));
  EXPECT_FALSE(is_of(Kind::refused, 7, 1));
  EXPECT_TRUE(is_of(Kind::fault, 0x8001, kFaultOfPeers));
  EXPECT_FALSE(is_of(Kind::fault, 0x8001, kFaultOfOwn));
  EXPECT_TRUE(is_of(Kind::async_event, 0, IBV_EVENT_PORT_ERR));
  EXPECT_TRUE(is_of(Kind::async_event, 0, IBV_EVENT_GID_CHANGE));
  EXPECT_FALSE(is_of(Kind::async_event, 0, IBV_EVENT_WQ_FATAL));
  EXPECT_TRUE(is_of(Kind::async_event, 5, IBV_EVENT_CQ_ERR));
  EXPECT_TRUE(is_of(Kind::async_event, 7, IBV_EVENT_SRQ_LIMIT_REACHED));
  EXPECT_FALSE(is_of(Kind::async_event, 0, IBV_EVENT_QP_FATAL));
}

TEST(TraceWords, the_queue_pair_of_a_text_is_found) {
  EXPECT_EQ(queue_pair_in("IBV_WR_SEND on queue pair 0x4001, wr_id 0x7"), 0x4001U);
  EXPECT_EQ(queue_pair_in("the completion queue"), 0U);
  EXPECT_EQ(queue_pair_in("queue pair 0x"), 0U);
}

}  // namespace
}  // namespace ringbolt::trace
