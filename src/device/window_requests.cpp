#include "device/window_requests.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "device/failures.h"
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

base::Explanation why_not_bound(Process& process, uint32_t pd_key, const WindowBinding& binding) {
  link::Region region;
  if (!process.windows().holds(binding.key, pd_key)) {
    return {binding.key == 0
                ? "bind_mw.rkey is none of the window's: it may differ from mw->rkey in its low 8 bits alone"
                : fmt::format("{:#x} is no rkey of a memory window of this protection domain", binding.key),
            "take the window's rkey, and change its low byte with ibv_inc_rkey"};
  }
  if (!process.regions().find(binding.region_key, region)) {
    return {fmt::format("bind_info.mr has the key {:#x}, and no region has", binding.region_key),
            "bind the window before the region is deregistered"};
  }
  if ((region.access & IBV_ACCESS_MW_BIND) == 0) {
    return {fmt::format("the region of {:#x} allows {}, and lacks IBV_ACCESS_MW_BIND", binding.region_key,
                        access_text(region.access)),
            "register it with IBV_ACCESS_MW_BIND"};
  }
  if (!region.holds(binding.address, binding.length)) {
    return {fmt::format("the region of {:#x} is {} bytes at {:#x}; {} at {:#x} are to be bound", binding.region_key,
                        region.length, region.first, binding.length, binding.address),
            "bind a part of the region"};
  }
  return {fmt::format("the window's access {}, on a region that allows {}", access_text(binding.access),
                      access_text(region.access)),
          "register the region with IBV_ACCESS_LOCAL_WRITE, in the protection domain of the queue pair"};
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
      core.when_noting([&](QueuePairNotes& notes) {
        notes.say_why_send(
            binds ? why_not_bound(process, core.pd.key, binding)
                  : base::Explanation{fmt::format("{:#x} is no key of a memory window of type 2 that is bound "
                                                  "on this queue pair",
                                                  request.immediate),
                                      "invalidate the rkey that the window was bound with, once"});
      });
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
  // Under the lock for sending, under which alone it is set: who looks without it asks in vain once more.
  draining_key_.store(0, std::memory_order_relaxed);
  return true;
}

}  // namespace ringbolt::device
