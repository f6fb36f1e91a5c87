// One-sided operations that the requester could not do itself, because it can't reach our memory: we do them for it,
// in a program's poll or on the service thread. The program may have unmapped the memory without deregistering it, and
// a peer's access must not end the program.

#include <atomic>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/guarded_copy.h"
#include "base/remote_access.h"
#include "device/failure_notes.h"
#include "device/lane_responder.h"
#include "device/receive_queue.h"
#include "device/recording.h"

namespace ringbolt::device {

[[gnu::cold, gnu::noinline]] void LaneResponder::explain_refused(link::Refusal refusal, link::RemoteFields asked,
                                                                 uint32_t access) {
  core_.when_noting([&](QueuePairNotes&) {
    explain_refused_request(core_, refusal == link::Refusal::access ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_INV_REQ_ERR,
                            asked.key, asked.remote_address, asked.total, access);
  });
}

[[gnu::cold, gnu::noinline]] void LaneResponder::explain_death() {
  core_.when_noting([&](QueuePairNotes& notes) {
    const std::string what = fmt::format("process {} was killed, or has crashed", connection_.remote->peer().pid());
    notes.say_why_send(why_unanswered(core_, connection_.waited_ns(base::now_ns()), what));
    notes.say_ended("the peer's " + what);
  });
}

[[gnu::cold, gnu::noinline]] void LaneResponder::explain_starved(ReceiveQueue& queue) {
  record_fate(trace::Kind::starved, core_.qpn);
  core_.when_noting([&](QueuePairNotes& notes)
                        RINGBOLT_NOT_ANALYSED { note_starved(core_, notes, queue.ring().count()); });
}

[[gnu::cold, gnu::noinline]] void LaneResponder::explain_refusal(bool is_invalid) {
  core_.when_noting([&](QueuePairNotes&) {
    explain_refusal_by_peer(core_, is_invalid ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_ACCESS_ERR);
  });
}

[[gnu::cold, gnu::noinline]] void LaneResponder::explain_invalidation(uint32_t key) {
  core_.when_noting([&](QueuePairNotes&) { note_refused_invalidation(core_, key); });
}

bool LaneResponder::refuse(link::Refusal refusal, link::RemoteFields asked, uint32_t access) {
  explain_refused(refusal, asked, access);
  if (core_.type == IBV_QPT_UC) {
    connection_.receiver.release();  // UC drops what it must not do
    return true;
  }
  connection_.refuse(refusal);
  connection_.tell();
  core_.enter_error(IBV_WC_WR_FLUSH_ERR);
  core_.announce(refusal == link::Refusal::access ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
  return false;
}

/// Each chunk is checked by itself, as if it were a request of its own: the key may have gone between two of them.
bool LaneResponder::serve_write(const link::SlotHeader& header) {
  const auto fields = connection_.receiver.fields<link::RemoteFields>();
  const std::byte* data = connection_.receiver.payload(header);
  std::byte* target = core_.find_local(fields.remote_address, header.length, fields.key, IBV_ACCESS_REMOTE_WRITE);
  if (data == nullptr || target == nullptr || !base::guarded_copy(target, data, header.length)) {
    return refuse(link::Refusal::access, fields, IBV_ACCESS_REMOTE_WRITE);
  }
  connection_.receiver.release();
  return true;
}

bool LaneResponder::serve_read() {
  const auto fields = connection_.receiver.fields<link::RemoteFields>();
  const std::byte* source = core_.find_local(fields.remote_address, fields.total, fields.key, IBV_ACCESS_REMOTE_READ);
  if (source == nullptr || fields.total > link::kLaneReadBufferBytes ||
      !base::guarded_copy(connection_.receiver.read_buffer(), source, fields.total)) {
    return refuse(link::Refusal::access, fields, IBV_ACCESS_REMOTE_READ);
  }
  connection_.receiver.respond(fields.operation, 0);
  connection_.receiver.release();
  return true;
}

bool LaneResponder::serve_atomic(const link::SlotHeader& header) {
  const auto fields = connection_.receiver.fields<link::AtomicFields>();
  const link::RemoteFields asked{fields.remote_address, fields.key, sizeof(uint64_t), 0, 0};
  std::byte* target = core_.find_local(fields.remote_address, sizeof(uint64_t), fields.key, IBV_ACCESS_REMOTE_ATOMIC);
  if (target == nullptr) {
    return refuse(link::Refusal::access, asked, IBV_ACCESS_REMOTE_ATOMIC);
  }
  if (reinterpret_cast<uint64_t>(target) % sizeof(uint64_t) != 0) {
    return refuse(link::Refusal::invalid_request, asked, IBV_ACCESS_REMOTE_ATOMIC);
  }
  if (!base::is_accessible(target, sizeof(uint64_t), true)) {
    return refuse(link::Refusal::access, asked, IBV_ACCESS_REMOTE_ATOMIC);
  }
  std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(target));
  uint64_t before = fields.compare_or_add;
  {
    const base::RemoteAccess by_peer;
    if ((header.flags & link::kSlotFetchAdd) != 0) {
      before = word.fetch_add(fields.compare_or_add);
    } else {
      word.compare_exchange_strong(before, fields.swap);
    }
  }
  connection_.receiver.respond(fields.operation, before);
  connection_.receiver.release();
  return true;
}

}  // namespace ringbolt::device
