// What a program is told of its failures with RINGBOLT_EXPLAIN, of which a process decides once, when it begins: each
// test runs in a process of its own, whose standard error it looks at. Both ends are in that process.

#include "device/failure_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "base/calling_place.h"
#include "device/device_test_support.h"
#include "link/rendezvous_test_support.h"

namespace ringbolt::device {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// As the library posts for a program.

int post_noted(End& end, ibv_send_wr wr) {
  ibv_send_wr* bad = nullptr;
  return end.qp().post_send_noted(&wr, &bad, {base::call_site()});
}
int send_noted(End& end, uint64_t id, ibv_sge piece) { return post_noted(end, End::request(IBV_WR_SEND, id, &piece)); }
int receive_noted(End& end, uint64_t id, ibv_sge piece) {
  ibv_recv_wr wr{id, nullptr, &piece, 1};
  ibv_recv_wr* bad = nullptr;
  return end.qp().post_receive_noted(&wr, &bad, {base::call_site()});
}

/// Two queue pairs that are connected, and memory.
struct Told {
  explicit Told(ibv_qp_type type = IBV_QPT_RC) : a(device, type), b(device, type) { connect(a, b); }

  int one_sided(ibv_wr_opcode opcode, ibv_sge piece, uint64_t address, uint32_t key) {
    ibv_send_wr wr = End::request(opcode, 7, &piece);
    wr.wr.rdma = {address, key};
    return post_noted(a, wr);
  }
  /// Both ends get on until A's send is complete.
  ibv_wc_status settle() {
    const uint64_t deadline = base::now_ns() + End::kPatienceNs;
    ibv_wc wc = a.poll_send();
    while (wc.status == End::kNothing && base::now_ns() < deadline) {
      received = b.poll_receive().status;
      wc = a.poll_send();
    }
    received = received == End::kNothing ? b.poll_receive().status : received;
    return wc.status;
  }

  DeviceUnderTest device;
  Memory from{device.pd(), 4096, Memory::kAll};
  Memory to{device.pd(), 4096, Memory::kAll};
  End a;
  End b;
  ibv_wc_status received = End::kNothing;
};

class FailureNotesTest : public testing::Test {
 protected:
  FailureNotesTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  Variable explain_{"RINGBOLT_EXPLAIN", "on"};
};

/// `body` runs in the new process; what it says there has to match.
#define RINGBOLT_EXPECT_TOLD(matcher, ...)          \
  EXPECT_EXIT(                                      \
      {                                             \
        __VA_ARGS__;                                \
        std::fflush(nullptr);                       \
        _exit(testing::Test::HasFailure() ? 1 : 0); \
      },                                            \
      testing::ExitedWithCode(0), matcher)

void write_with_a_wrong_key() {
  Told told;
  EXPECT_EQ(told.one_sided(IBV_WR_RDMA_WRITE, told.from.piece(0, 64), told.to.address(), 0x77), 0);
  EXPECT_EQ(told.settle(), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(FailureNotesTest, unknown_key_of_the_peer_is_named_with_the_request) {
  RINGBOLT_EXPECT_TOLD(AllOf(HasSubstr("IBV_WR_RDMA_WRITE of queue pair 0x"), HasSubstr("wr_id 7"),
                             HasSubstr("posted at "), HasSubstr("IBV_WC_REM_ACCESS_ERR"), HasSubstr("rkey 0x77")),
                       write_with_a_wrong_key());
}

void write_beyond_the_end() {
  Told told;
  EXPECT_EQ(told.one_sided(IBV_WR_RDMA_WRITE, told.from.piece(0, 64), told.to.address() + 4040, told.to.key()), 0);
  EXPECT_EQ(told.settle(), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(FailureNotesTest, bounds_are_told_in_numbers) {
  RINGBOLT_EXPECT_TOLD(HasSubstr("64 bytes from byte 4040 on were addressed"), write_beyond_the_end());
}

void write_to_what_was_deregistered() {
  Told told;
  auto gone = std::make_unique<Memory>(told.device.pd(), 100, Memory::kAll);
  const uint64_t address = gone->address();
  const uint32_t key = gone->key();
  gone.reset();
  EXPECT_EQ(told.one_sided(IBV_WR_RDMA_WRITE, told.from.piece(0, 64), address, key), 0);
  EXPECT_EQ(told.settle(), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(FailureNotesTest, region_that_is_gone_is_remembered) {
  RINGBOLT_EXPECT_TOLD(HasSubstr("its region of 100 bytes at 0x"), write_to_what_was_deregistered());
}

void read_without_leave() {
  Told told;
  const Memory closed(told.device.pd(), 100, IBV_ACCESS_LOCAL_WRITE);
  EXPECT_EQ(told.one_sided(IBV_WR_RDMA_READ, told.from.piece(0, 64), closed.address(), closed.key()), 0);
  EXPECT_EQ(told.settle(), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(FailureNotesTest, access_that_is_lacking_is_named) {
  RINGBOLT_EXPECT_TOLD(AllOf(HasSubstr("allows IBV_ACCESS_LOCAL_WRITE, and lacks IBV_ACCESS_REMOTE_READ"),
                             HasSubstr("fix: register it with IBV_ACCESS_REMOTE_READ")),
                       read_without_leave());
}

void atomic_off_the_word() {
  Told told;
  ibv_sge piece = told.from.piece(0, 8);
  ibv_send_wr wr = End::request(IBV_WR_ATOMIC_FETCH_AND_ADD, 7, &piece);
  wr.wr.atomic = {told.to.address() + 4, 1, 0, told.to.key()};
  EXPECT_EQ(post_noted(told.a, wr), 0);
  EXPECT_EQ(told.settle(), IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(FailureNotesTest, atomic_needs_a_multiple_of_8) {
  RINGBOLT_EXPECT_TOLD(HasSubstr("which is not a multiple of 8"), atomic_off_the_word());
}

void send_of_a_wrong_local_key() {
  Told told;
  ibv_sge piece = told.from.piece(0, 64);
  piece.lkey = 0x88;
  EXPECT_EQ(send_noted(told.a, 7, piece), 0);
  EXPECT_EQ(told.settle(), IBV_WC_LOC_PROT_ERR);
}

TEST_F(FailureNotesTest, local_key_is_called_so) {
  RINGBOLT_EXPECT_TOLD(AllOf(HasSubstr("IBV_WC_LOC_PROT_ERR"), HasSubstr("lkey 0x88 is no key of this process")),
                       send_of_a_wrong_local_key());
}

void send_into_a_short_receive() {
  Told told;
  EXPECT_EQ(receive_noted(told.b, 9, told.to.piece(0, 50)), 0);
  EXPECT_EQ(send_noted(told.a, 7, told.from.piece(0, 100)), 0);
  EXPECT_EQ(told.settle(), IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(told.received, IBV_WC_LOC_LEN_ERR);
}

TEST_F(FailureNotesTest, short_receive_is_told_at_both_ends) {
  RINGBOLT_EXPECT_TOLD(AllOf(HasSubstr("receive of queue pair 0x"), HasSubstr("wr_id 9"),
                             HasSubstr("peer: the message has "), HasSubstr("100 bytes, and the receive 50")),
                       send_into_a_short_receive());
}

void sends_behind_one_that_fails() {
  Told told;
  ibv_sge piece = told.from.piece(0, 64);
  piece.lkey = 0x88;
  EXPECT_EQ(send_noted(told.a, 7, piece), 0);
  EXPECT_EQ(told.settle(), IBV_WC_LOC_PROT_ERR);
  for (uint64_t id = 8; id < 11; ++id) {
    EXPECT_EQ(send_noted(told.a, id, told.from.piece(0, 64)), 0);
    EXPECT_EQ(told.settle(), IBV_WC_WR_FLUSH_ERR);
  }
}

TEST_F(FailureNotesTest, first_flushed_request_names_what_ended_the_queue_pair_and_others_nothing) {
  RINGBOLT_EXPECT_TOLD(
      AllOf(HasSubstr("wr_id 8: IBV_WC_WR_FLUSH_ERR"), HasSubstr("why: flushed: wr_id 7, an IBV_WR_SEND"),
            Not(HasSubstr("wr_id 9")), Not(HasSubstr("wr_id 10"))),
      sends_behind_one_that_fails());
}

void flush_that_was_asked_for() {
  Told told;
  EXPECT_EQ(receive_noted(told.a, 9, told.to.piece(0, 50)), 0);
  EXPECT_EQ(told.a.to(IBV_QPS_ERR), 0);
  EXPECT_EQ(told.a.await_receive().status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(FailureNotesTest, flush_that_was_asked_for_needs_no_words) {
  RINGBOLT_EXPECT_TOLD(Not(HasSubstr("why:")), flush_that_was_asked_for());
}

void step_without_an_attribute() {
  DeviceUnderTest device;
  End end(device, IBV_QPT_UC);
  EXPECT_EQ(end.to_init(), 0);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(end.qp().modify(attributes, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN), EINVAL);
}

TEST_F(FailureNotesTest, refused_step_names_the_attribute_that_it_lacks) {
  RINGBOLT_EXPECT_TOLD(
      AllOf(HasSubstr("ibv_modify_qp: EINVAL"), HasSubstr("needs IBV_QP_RQ_PSN, which the mask lacks")),
      step_without_an_attribute());
}

void send_without_a_receive() {
  DeviceUnderTest device;
  Memory from(device.pd(), 64, Memory::kAll);
  End a(device, IBV_QPT_RC);
  End b(device, IBV_QPT_RC);
  EXPECT_EQ(a.to_init() | b.to_init(), 0);
  EXPECT_EQ(a.to_rtr(b.qpn()) | b.to_rtr(a.qpn()), 0);
  EXPECT_EQ(a.to_rts(14, 0) | b.to_rts(), 0);
  EXPECT_EQ(send_noted(a, 7, from.piece(0, 8)), 0);
  const uint64_t deadline = base::now_ns() + End::kPatienceNs;
  ibv_wc wc = a.poll_send();
  while (wc.status == End::kNothing && base::now_ns() < deadline) {
    b.poll_receive();
    wc = a.poll_send();
  }
  EXPECT_EQ(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST_F(FailureNotesTest, peer_without_a_receive_says_so_itself) {
  RINGBOLT_EXPECT_TOLD(
      AllOf(HasSubstr("IBV_WC_RNR_RETRY_EXC_ERR"), HasSubstr("peer: no receive was ever posted (process ")),
      send_without_a_receive());
}

// The program's side of a call counts its empty polls; here the test is in its place.
void poll_for_what_can_not_come() {
  const link::testing::TempFolder folder;
  const std::string path = folder.path() + "/told";
  const Variable into_a_file("RINGBOLT_EXPLAIN", path);
  Told told;
  Waiters& pollers = told.a.receives().pollers();
  const uint64_t deadline = base::now_ns() + End::kPatienceNs;
  std::string said;
  while (said.find("fix:") == std::string::npos && base::now_ns() < deadline) {
    for (int i = 0; i < 1000; ++i) {
      told.a.poll_receive();
      pollers.waits.fetch_add(1);
    }
    std::ifstream file(path);
    said.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::fputs(said.c_str(), stderr);
}

TEST_F(FailureNotesTest, poll_in_vain_is_told_after_a_second) {
  RINGBOLT_EXPECT_TOLD(AllOf(HasSubstr("ibv_poll_cq of the completion queue of queue pair 0x"),
                             HasSubstr("waits for a completion that can't come"),
                             HasSubstr("RTS, 0 sends unfinished, 0 receives posted")),
                       poll_for_what_can_not_come());
}

}  // namespace
}  // namespace ringbolt::device
