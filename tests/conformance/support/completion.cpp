// Waiting for completions and judging them.
#include "deadline.h"
#include "endpoint.h"

namespace ringbolt::conformance {

ibv_wc wait_completion(ibv_cq* cq) { return wait_completions(cq, 1).front(); }

std::vector<ibv_wc> wait_completions(ibv_cq* cq, size_t count) {
  std::vector<ibv_wc> found;
  const Deadline deadline;
  while (found.size() < count) {
    ibv_wc wc{};
    const int polled = ibv_poll_cq(cq, 1, &wc);
    if (polled < 0) {
      throw SetUpError("ibv_poll_cq returned " + std::to_string(polled));
    }
    if (polled == 1) {
      found.push_back(wc);
    } else if (deadline.has_passed()) {
      std::string text = "completion " + std::to_string(found.size() + 1) + " of " +
                         std::to_string(count) + " did not come in time";
      if (!found.empty()) {
        text += "; the last was " + describe(found.back());
      }
      throw SetUpError(text);
    }
  }
  return found;
}

bool is_empty(ibv_cq* cq) {
  ibv_wc wc{};
  return ibv_poll_cq(cq, 1, &wc) == 0;
}

std::string describe(const ibv_wc& wc) {
  return "wr_id " + std::to_string(wc.wr_id) + " " + ibv_wc_status_str(wc.status) + " opcode " +
         std::to_string(wc.opcode) + " qp " + std::to_string(wc.qp_num) + " bytes " +
         std::to_string(wc.byte_len);
}

void expect_success(const ibv_wc& wc, uint64_t wr_id, ibv_wc_opcode opcode) {
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << describe(wc);
  EXPECT_EQ(wc.wr_id, wr_id) << describe(wc);
  if (wc.status == IBV_WC_SUCCESS) {
    EXPECT_EQ(wc.opcode, opcode) << describe(wc);
  }
}

void expect_status(const ibv_wc& wc, uint64_t wr_id, ibv_wc_status status) {
  EXPECT_EQ(wc.status, status) << describe(wc) << ", expected " << ibv_wc_status_str(status);
  EXPECT_EQ(wc.wr_id, wr_id) << describe(wc);
}

}  // namespace ringbolt::conformance
