// UC messages that meet no posted receive, on a device that does not hold their senders back: they are dropped, or wait
// here as far as there is room. docs/profiles.md, norecv.

#include "device/receive_queue.h"
#include "device/receive_quirks.h"

namespace ringbolt::device {

Bypass ReceiveQuirks::choose(ReceiveQueue& queue, uint32_t total) {
  // Those that wait already come first.
  if (!diverts_ || queue.current().is_open || (!queue.ring().is_empty() && unexpected_.is_empty())) {
    bypass_ = Bypass::none;
  } else if (unexpected_.begin(total)) {
    bypass_ = Bypass::waits;
  } else {
    bypass_ = Bypass::dropped;
    note_dropped();
  }
  bypassed_bytes_ = 0;
  return bypass_;
}

void ReceiveQuirks::note_dropped() const {
  core_.counts.note(kSharedOutOfBuffer);
  core_.port->warn(profile::Rule::no_receive, "a message that met no receive is dropped");
}

void ReceiveQuirks::append(const std::byte* data, uint32_t length) {
  if (bypass_ == Bypass::waits) {
    unexpected_.append(bypassed_bytes_, {data, length});
    bypassed_bytes_ += length;
  }
}

void ReceiveQuirks::drop() {
  bypass_ = Bypass::dropped;
  note_dropped();
}

void ReceiveQuirks::end(const ReceivedMessage& message) {
  if (bypass_ == Bypass::waits) {
    if (unexpected_.finish(message)) {
      core_.ask_for_look();
    } else {
      note_dropped();
    }
  }
  bypass_ = Bypass::none;
}

void ReceiveQuirks::deliver(ReceiveQueue& queue, CompletionQueue& cq) {
  while (!unexpected_.is_empty() && cq.has_room() && queue.open()) {
    const UnexpectedMessage waiting = unexpected_.take();
    const ibv_wc_status status = put(queue, waiting);
    if (status != IBV_WC_SUCCESS) {
      queue.fail(cq, status);
      core_.enter_error(IBV_WC_WR_FLUSH_ERR);
      return;
    }
    queue.complete(cq, waiting.message);
  }
}

/// Puts the bytes into the open receive.
ibv_wc_status ReceiveQuirks::put(ReceiveQueue& queue, const UnexpectedMessage& waiting) {
  if (waiting.message.opcode != IBV_WC_RECV) {
    return IBV_WC_SUCCESS;  // the data of a WRITE is where it belongs
  }
  const ibv_wc_status status = queue.begin(waiting.message.length);
  if (status == IBV_WC_SUCCESS) {
    queue.place(0, waiting.bytes.data(), waiting.message.length);
  }
  return status;
}

}  // namespace ringbolt::device
