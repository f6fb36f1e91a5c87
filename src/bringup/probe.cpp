#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "bringup/survey.h"
#include "verbs/expected_refusals.h"
#include "verbs/queue_pair.h"

namespace ringbolt::bringup {
namespace {

// The least that any device is known to give (Apple's TN3205), for libraries that can't be asked.
constexpr uint32_t kFrameBytes = 4096;
constexpr uint32_t kLeastQueuePairs = 10;
constexpr uint32_t kLeastRegions = 100;
constexpr uint32_t kLeastWorkRequests = 4095;

// Devices differ in how they say so; all else, as EBUSY or ENOMEM, means that it can't be told now.
bool means_no_such_type(int error) {
  return error == EOPNOTSUPP || error == EINVAL || error == ENOSYS || error == EPERM;
}

// Throws base::Error when it can't be told now, as when all queue pairs are taken.
bool has_type(const verbs::ProtectionDomain& pd, const verbs::CompletionQueue& cq, uint8_t port, ibv_qp_type type) {
  try {
    verbs::UnconnectedQueuePair qp(pd, {.type = type, .send_cq = &cq, .receive_cq = &cq});
    // Some refuse the type only here. The queue pair goes at the end of the scope.
    qp.to_init({.port = port});
    return true;
  } catch (const base::Error& error) {
    if (!means_no_such_type(error.errno_value())) {
      throw;
    }
    return false;
  }
}

bool has_channels(const verbs::Context& context) {
  try {
    const verbs::CompletionChannel channel(context);
    return true;
  } catch (const base::Error&) {
    return false;
  }
}

uint32_t known(int value, uint32_t otherwise) { return value > 0 ? static_cast<uint32_t>(value) : otherwise; }

}  // namespace

Capabilities probe(const verbs::ProtectionDomain& pd, const verbs::CompletionQueue& cq, uint8_t port) {
  const verbs::Context& context = pd.context();
  // Ringbolt's own library explains refusals to people: these are none of a program's mistakes.
  const verbs::ExpectedRefusals expected(context.calls());
  Capabilities can;
  can.has_uc = has_type(pd, cq, port, IBV_QPT_UC);
  can.has_rc = has_type(pd, cq, port, IBV_QPT_RC);
  can.has_channels = has_channels(context);
  // So it is with all devices over Thunderbolt that are known, and with no others.
  can.counts_frames = can.has_uc && !can.has_rc;
  const ibv_device_attr device = context.query_device().value_or(ibv_device_attr{});
  can.most_queue_pairs = known(device.max_qp, kLeastQueuePairs);
  if (can.counts_frames) {
    can.most_queue_pairs = std::min(can.most_queue_pairs, kLeastQueuePairs);  // of 11 that it shows 10 can be had
  }
  can.most_regions = known(device.max_mr, kLeastRegions);
  can.most_work_requests = known(device.max_qp_wr, kLeastWorkRequests);
  can.most_sge = known(device.max_sge, 1);
  // A message fits into the queue that it is posted to: 4095 frames of 4 KiB.
  const uint32_t by_depth = kLeastWorkRequests * kFrameBytes;
  const auto attributes = context.query_port(port);
  const uint32_t by_port = attributes && attributes->max_msg_sz != 0 ? attributes->max_msg_sz : by_depth;
  const uint64_t by_frames = uint64_t{can.most_work_requests} * kFrameBytes;
  can.most_message_bytes = can.counts_frames ? static_cast<uint32_t>(std::min<uint64_t>(by_port, by_frames)) : by_port;
  return can;
}

}  // namespace ringbolt::bringup
