// UD loses exactly the messages that the plan names, and never hands over a damaged one.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "deadline.h"
#include "fault/plan_text.h"
#include "fault/stream.h"
#include "faulty_device.h"
#include "pattern.h"

namespace ringbolt::faults {
namespace {

using namespace conformance;

constexpr uint32_t kGrh = 40;
constexpr uint32_t kBytes = 256;
constexpr size_t kFrameBytes = 12 + 8 + 4 + kBytes + 4;  // BTH, DETH, immediate, payload, ICRC
constexpr uint32_t kSlots = 128;
constexpr uint32_t kBatch = 16;

/// How often each message arrives under the plan: the frames of this process are its messages, in order.
std::vector<uint32_t> predict(const std::string& plan, uint32_t messages) {
  fault::Stream stream({{}, {}, "rdma_lo"}, fault::Direction::send);
  stream.set_rules(*fault::parse_plan(plan), 0);
  std::vector<uint32_t> times;
  for (uint32_t i = 0; i < messages; ++i) {
    const fault::Verdict verdict = stream.judge(kFrameBytes, 0);
    // Routers may change the fifth byte, which the ICRC leaves out: a bit of it harms nothing.
    const bool is_whole = verdict.kept_bytes == SIZE_MAX && (verdict.flip_count == 0 || verdict.flips[0] / 8 == 4);
    times.push_back(!verdict.is_lost && is_whole ? 1 + verdict.copies : 0);
  }
  return times;
}

/// Sends messages in batches small enough for every buffer on the way, and compares what arrives.
class Exchange {
 public:
  Exchange()
      : device_(open_device()),
        options_(options()),
        near_(device_, options_),
        far_(device_, options_),
        outgoing_(near_.pd(), kBatch * kBytes),
        incoming_(far_.pd(), size_t{kSlots} * (kGrh + kBytes)) {
    near_.connect(far_.address());
    far_.connect(near_.address());
    ah_ = make_ah(device_, near_.pd(), far_.address().gid);
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      post(slot);
    }
  }

  void run(const std::vector<uint32_t>& expected) {
    size_t due = 0;
    for (uint32_t first = 0; first < expected.size(); first += kBatch) {
      const auto count = std::min<uint32_t>(kBatch, static_cast<uint32_t>(expected.size()) - first);
      send(first, count);
      for (uint32_t i = first; i < first + count; ++i) {
        due += expected[i];
      }
      ASSERT_TRUE(wait_until([&] { return take() >= due; })) << received_ << " of " << due << " came";
    }
    for (uint32_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(times_[i], expected[i]) << "message " << i;
    }
    EXPECT_EQ(received_, due);
  }

 private:
  static QpOptions options() {
    QpOptions options;
    options.type = IBV_QPT_UD;
    options.recv_wr = kSlots;
    return options;
  }
  void post(uint32_t slot) {
    ASSERT_EQ(post_recv(far_.qp(), slot, {incoming_.sge(uint64_t{slot} * (kGrh + kBytes), kGrh + kBytes)}), 0);
  }
  void send(uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      fill_pattern(outgoing_.bytes().subspan(i * kBytes, kBytes), first + i);
      SendWr wr(i, IBV_WR_SEND_WITH_IMM, {outgoing_.sge(i * kBytes, kBytes)});
      wr.immediate(first + i).datagram(ah_.get(), far_.qp()->qp_num);
      ASSERT_EQ(wr.post(near_.qp()), 0);
    }
    wait_completions(near_.send_cq(), count);
  }
  size_t take() {
    ibv_wc wc{};
    while (ibv_poll_cq(far_.recv_cq(), 1, &wc) == 1) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.byte_len, kGrh + kBytes);
      const auto place = incoming_.bytes().subspan(wc.wr_id * (kGrh + kBytes) + kGrh, kBytes);
      EXPECT_EQ(first_mismatch(place, ntohl(wc.imm_data)), -1) << "message " << ntohl(wc.imm_data);
      ++times_[ntohl(wc.imm_data)];
      ++received_;
      post(static_cast<uint32_t>(wc.wr_id));
    }
    return received_;
  }

  Device device_;
  QpOptions options_;
  Endpoint near_;
  Endpoint far_;
  Region outgoing_;
  Region incoming_;
  Ah ah_;
  std::map<uint32_t, uint32_t> times_;
  size_t received_ = 0;
};

class Datagrams : public testing::TestWithParam<const char*> {};

TEST_P(Datagrams, arrive_as_often_as_the_plan_says) {
  for (const char* chance : kChances) {
    const std::string plan = std::string(GetParam()) + " " + chance +
                             (std::string(GetParam()) == "delay" ? " by 300us jitter 200us" : "") + " direction send";
    SCOPED_TRACE(plan);
    constexpr uint32_t kMessages = 6400;
    with_faults(plan, [&] { Exchange().run(predict(plan, kMessages)); });
  }
}
INSTANTIATE_TEST_SUITE_P(All, Datagrams,
                         testing::Values("loss", "duplicate", "reorder", "corrupt", "truncate", "delay"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace ringbolt::faults
