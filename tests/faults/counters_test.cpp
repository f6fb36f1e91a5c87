// What befalls frames shows in the counters of the port that it befalls.
#include <gtest/gtest.h>

#include "../counters/port_counters.h"
#include "deadline.h"
#include "endpoint.h"
#include "faulty_device.h"

namespace ringbolt::faults {
namespace {

using namespace conformance;

/// Sends messages of several packets back and forth until `counter` has moved; says whether it did in time.
bool moves(const char* counter, ibv_qp_type type = IBV_QPT_RC) {
  constexpr uint32_t kBytes = 20'000;
  QpOptions options;
  options.type = type;
  options.retry_cnt = 7;
  const Device device = open_device();
  Endpoint near(device, options);
  Endpoint far(device, options);
  connect(near, far);
  Region from(near.pd(), kBytes);
  Region to(far.pd(), kBytes);
  const counters::Counts before = counters::read_ports();
  const Deadline deadline;
  while (!deadline.has_passed()) {
    EXPECT_EQ(post_recv(far.qp(), 1, {to.sge(0, kBytes)}), 0);
    EXPECT_EQ(SendWr(1, IBV_WR_SEND, {from.sge(0, kBytes)}).post(near.qp()), 0);
    EXPECT_EQ(wait_completion(far.recv_cq()).status, IBV_WC_SUCCESS);
    EXPECT_EQ(wait_completion(near.send_cq()).status, IBV_WC_SUCCESS);
    const counters::Counts grown = counters::grown_since(before);
    if (grown.contains(counter)) {
      EXPECT_GE(grown.at("rdma_recvs"), 1U);
      return true;
    }
  }
  return false;
}

TEST(Counters, of_a_path_without_faults_stand_still) {
  with_faults("loss 0% direction send", [] {
    EXPECT_FALSE([] {
      const counters::Counts before = counters::read_ports();
      EXPECT_TRUE(moves("rdma_recvs"));
      const counters::Counts grown = counters::grown_since(before);
      return grown.contains("port_rcv_errors") || grown.contains("rx_icrc_encapsulated") ||
             grown.contains("port_xmit_discards") || grown.contains("retry_exceeded_err");
    }());
  });
}

TEST(Counters, tell_of_losses) {
  with_faults("loss 10% seed 1 direction send", [] { EXPECT_TRUE(moves("completer_retry_err")); });
  with_faults("loss 10% seed 1 direction send", [] { EXPECT_TRUE(moves("out_of_sequence")); });
}

TEST(Counters, tell_of_duplicates) {
  with_faults("duplicate 20% seed 1 direction send", [] { EXPECT_TRUE(moves("duplicate_request")); });
}

TEST(Counters, tell_of_reordering) {
  with_faults("reorder 20% seed 1 direction send", [] { EXPECT_TRUE(moves("out_of_seq_request")); });
}

TEST(Counters, tell_of_corruption) {
  with_faults("corrupt 10% seed 1 direction send", [] { EXPECT_TRUE(moves("rx_icrc_encapsulated")); });
  with_faults("corrupt 10% seed 1 direction send", [] { EXPECT_TRUE(moves("port_rcv_errors")); });
}

}  // namespace
}  // namespace ringbolt::faults
