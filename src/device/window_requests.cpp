#include "device/window_requests.h"

#include "base/clock.h"
#include "device/limits.h"
#include "device/send_queue.h"

namespace ringbolt::device {
namespace {

WindowBinding binding_of(const SendRequest& request, uint32_t qpn) {
  WindowBinding binding;
  binding.region_key = request.key;
  binding.key = request.window_key;
  binding.address = request.remote_address;
  binding.length = request.window_length;
  binding.access = request.window_access;
  binding.bound_qpn = request.is_type2_window ? qpn : link::kAnyQueuePair;
  return binding;
}

}  // namespace

bool WindowRequests::execute(SendQueue& queue, SendEntry& entry, const SendRequest& request) {
  QueuePairCore& core = queue.core();
  Process& process = core.process;
  const bool binds = request.opcode == IBV_WR_BIND_MW;
  const WindowBinding binding = binds ? binding_of(request, core.qpn) : WindowBinding{};
  if (entry.moved == 0) {
    if (binds ? !may_bind_window(process, core.pd.key, binding)
              : !invalidate_window(process, core.qpn, request.immediate)) {
      return queue.fail(entry, binds ? IBV_WC_MW_BIND_ERR : IBV_WC_LOC_QP_OP_ERR);
    }
    if (const uint32_t closed = binds ? close_window(process, binding.key) : request.immediate; closed != 0) {
      entry.moved = 1;  // not to be closed again when its turn comes again
      drain_until_ns_.store(base::now_ns() + kAccessDrainNs, std::memory_order_relaxed);
      draining_key_.store(closed, std::memory_order_seq_cst);
      process.ask_for_drain();
    }
  }
  if (draining_key_.load(std::memory_order_relaxed) != 0) {
    return false;
  }
  if (binds && !bind_window(process, core.pd.key, binding)) {
    return queue.fail(entry, IBV_WC_MW_BIND_ERR);
  }
  entry.phase = SendPhase::finished;
  return true;
}

bool WindowRequests::end_drain(uint32_t key) {
  if (draining_key_.load(std::memory_order_relaxed) != key) {
    return false;
  }
  draining_key_.store(0, std::memory_order_relaxed);
  return true;
}

}  // namespace ringbolt::device
