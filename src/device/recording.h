#pragma once

#include <infiniband/verbs.h>

#include "device/queue_pair_core.h"
#include "fault/stream.h"
#include "trace/recorder.h"
#include "transport/rc_requester.h"
#include "transport/rc_responder.h"
#include "wire/packet.h"

/// What the device tells the recorder of (src/trace), where there is one; else each of these is a look at a pointer.
/// What a program calls, the border tells of. Thread-safe.
namespace ringbolt::device {

/// A packet; `qpn` is ours.
inline void record_packet(trace::Kind kind, uint32_t qpn, const wire::Bth& bth, size_t bytes, uint8_t why = 0) {
  if (trace::Recorder* const to = trace::recorder(); to != nullptr) [[unlikely]] {
    trace::Record what;
    what.kind = kind;
    what.object = qpn;
    what.code = bth.opcode;
    what.status = why;
    what.number = bth.psn;
    what.bytes = static_cast<uint32_t>(bytes);
    to->note(what);
  }
}

/// Something befell a queue pair, or a completion queue, `count` times.
inline void record_fate(trace::Kind kind, uint32_t object, uint64_t count = 1) {
  if (trace::Recorder* const to = trace::recorder(); to != nullptr && count != 0) [[unlikely]] {
    trace::Record what;
    what.kind = kind;
    what.object = object;
    what.number = static_cast<uint32_t>(count);
    to->note(what);
  }
}

// recording.cpp: out of line, for where somebody records.

/// With whom it is connected, too, at the step to RTR.
void record_state(const QueuePairCore& core, ibv_qp_state state);
/// Waits in its completion queue. `wc()` gives it, if it is wanted.
void record_made_one(const ibv_wc& wc);
template <class Completion>
void record_made(Completion&& wc) RINGBOLT_NOT_ANALYSED {  // who calls holds what `wc` requires
  if (trace::recorder() != nullptr) [[unlikely]] {
    record_made_one(wc());
  }
}
void record_async_event(ibv_event_type type, const void* element);
/// What is new since `told`.
void record_news(uint32_t qpn, const transport::RequesterCounters& now, const transport::RequesterCounters& told);
void record_news(uint32_t qpn, const transport::ResponderCounters& now, const transport::ResponderCounters& told);
/// A fault has struck a message, or a completion.
void record_fault(uint32_t qpn, const fault::Verdict& verdict);

}  // namespace ringbolt::device
