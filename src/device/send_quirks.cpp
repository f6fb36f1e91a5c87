// What a profile says to the requests of a send queue.

#include "device/send_quirks.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "device/frame_counts.h"
#include "device/send_queue.h"
#include "profile/frames.h"

namespace ringbolt::device {
namespace {

using profile::Rule;

uint8_t operation_bit(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
      return profile::kSend;
    case IBV_WR_SEND_WITH_IMM:
      return profile::kSendImmediate;
    case IBV_WR_RDMA_WRITE:
      return profile::kWrite;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return profile::kWriteImmediate;
    case IBV_WR_RDMA_READ:
      return profile::kRead;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return profile::kAtomic;
    default:
      return profile::kInvalidateOrBind;
  }
}

const char* name_of(uint8_t operation) {
  switch (operation) {
    case profile::kSend:
      return "SEND";
    case profile::kSendImmediate:
      return "SEND with immediate data";
    case profile::kWrite:
      return "WRITE";
    case profile::kWriteImmediate:
      return "WRITE with immediate data";
    case profile::kRead:
      return "READ";
    case profile::kAtomic:
      return "an atomic operation";
    default:
      return "an operation on memory windows or keys";
  }
}

}  // namespace

bool SendQuirks::are_needed(const QueuePairCore& core) {
  return core.port->profile.takes_away() || core.faults.has_any();
}

size_t SendQuirks::slots(const QueuePairCore& core, uint32_t requests) {
  // Sends that may be told and not delivered: each has a slot until it is.
  constexpr size_t kMostEarly = 8192;
  const size_t parts = core.faults.shuffle() != nullptr ? shuffle::kMostParts : 1;
  return std::bit_ceil(size_t{requests} * parts + (may_complete_early(core) ? kMostEarly : 0));
}

std::unique_ptr<SendQuirks> SendQuirks::create(QueuePairCore& core) {
  return are_needed(core) ? std::make_unique<SendQuirks>(core, may_complete_early(core)) : nullptr;
}

SendQuirks::SendQuirks(QueuePairCore& core, bool completes_early)
    : core_(core),
      has_rules_(core.port->profile.takes_away()),
      counts_frames_(core.port->profile.limits.counts_frames),
      completes_early_(completes_early),
      splits_pieces_(core.port->profile.knobs.splits_pieces),
      shuffle_(SendShuffle::create(core)),
      posted_(fault::Call::post_send, core.number) {}

int SendQuirks::judge_call() {
  return core_.faults.has(fault::Subject::call) ? posted_.judge(*core_.port, {&core_.number, 1}) : 0;
}

int SendQuirks::check(SendQueue& queue, const ibv_send_wr& wr) const {
  const int error = has_rules_ ? check_rules(queue, wr) : 0;
  return error != 0 ? error : queue.check(wr);
}

int SendQuirks::check_rules(const SendQueue& queue, const ibv_send_wr& wr) const {
  const Port& port = *core_.port;
  const profile::Limits& limits = port.profile.limits;
  const uint8_t operation = operation_bit(wr.opcode);
  if (!port.profile.allows(operation)) {
    return port.refuse(Rule::operation, EOPNOTSUPP, name_of(operation));
  }
  if (!limits.has_inline && (wr.send_flags & IBV_SEND_INLINE) != 0) {
    return port.refuse(Rule::inline_data, EINVAL, "a send with inline data");
  }
  const uint64_t length = length_of_pieces(wr.sg_list, wr.num_sge);
  const bool is_send = operation == profile::kSend || operation == profile::kSendImmediate;
  if (port.profile.knobs.refuses_empty_sends && is_send && length == 0) {
    return port.refuse(Rule::empty_send, EMSGSIZE, "a send without a byte");
  }
  if (counts_frames_) {
    return check_frames(queue, wr);
  }
  return limits.message_bytes != 0 && length > limits.message_bytes
             ? port.refuse(Rule::message_length, EINVAL,
                           fmt::format("a message of {} bytes, {} at most", length, limits.message_bytes))
             : 0;
}

int SendQuirks::check_frames(const SendQueue& queue, const ibv_send_wr& wr) const {
  const Port& port = *core_.port;
  const uint32_t granted = queue.limits().requests;
  if (port.profile.knobs.writes_into_stream && wr.opcode == IBV_WR_RDMA_WRITE) {
    port.warn(Rule::write_into_stream, fmt::format("a WRITE of {} bytes goes into the peer's receive queue",
                                                   length_of_pieces(wr.sg_list, wr.num_sge)));
  }
  const uint32_t frames = frames_of_pieces(wr.sg_list, wr.num_sge, splits_pieces_);
  if (frames > granted) {
    port.refuse(Rule::message_length, ENOMEM,
                fmt::format("a message of {} frames into a queue of {}", frames, granted));
    return kFramesExceeded;
  }
  if (frames_ + frames > postable_frames(port, granted) && !port.profile.knobs.overruns_silently) {
    port.refuse(
        Rule::frame_budget, ENOMEM,
        fmt::format("a send of {} frames beyond the {} that are queued, of {} granted", frames, frames_, granted));
    return kFramesExceeded;
  }
  return 0;
}

/// On a device that was seen to end a message, and to complete, with each piece.
uint32_t SendQuirks::messages_of(const SendQueue& queue, const ibv_send_wr& wr) const {
  const bool is_message = wr.opcode == IBV_WR_SEND || wr.opcode == IBV_WR_SEND_WITH_IMM ||
                          (wr.opcode == IBV_WR_RDMA_WRITE && core_.port->profile.knobs.writes_into_stream);
  const bool is_allowed = wr.num_sge > 1 && static_cast<uint32_t>(wr.num_sge) <= queue.limits().pieces;
  return splits_pieces_ && is_message && is_allowed ? static_cast<uint32_t>(wr.num_sge) : 1;
}

/// Posted and, as far as the program knows, not complete.
uint32_t SendQuirks::open_sends() const {
  const uint32_t finished = completes_early_ ? told_ : core_.sends.done.load(std::memory_order_relaxed);
  return core_.sends.tail.load(std::memory_order_relaxed) - finished - extra_parts_;
}

int SendQuirks::check_list(SendQueue& queue, const ibv_send_wr* wr) {
  const ibv_send_wr* const first = wr;
  for (uint32_t used = open_sends(); wr != nullptr; wr = wr->next) {
    used += messages_of(queue, *wr);
    if (const int error = used > queue.limits().requests ? ENOMEM : check(queue, *wr)) {
      return error;
    }
  }
  for (wr = first; wr != nullptr; wr = wr->next) {
    if (const int error = judge_call()) {
      return error;
    }
  }
  return 0;
}

[[gnu::cold, gnu::noinline]] int SendQuirks::append_list(SendQueue& queue, ibv_send_wr*& wr, bool is_whole) {
  if (const int error = is_whole ? check_list(queue, wr) : 0) {
    return error;
  }
  const uint32_t first = core_.sends.tail.load(std::memory_order_relaxed);
  const uint64_t line_free_ns = line_free_ns_;
  int error = 0;
  for (; wr != nullptr; wr = wr->next) {
    const uint32_t messages = messages_of(queue, *wr);
    const bool is_full =
        open_sends() + messages > queue.limits().requests || core_.sends.unfinished() + messages > queue.slots();
    error = is_full ? ENOMEM : check(queue, *wr);
    error = error == 0 && !is_whole ? judge_call() : error;
    if (error == 0) {
      error = messages == 1 ? append(queue, *wr) : append_pieces(queue, *wr);
    }
    if (error != 0) {
      break;
    }
  }
  if (error != 0 && is_whole) {
    take_back(queue, first, line_free_ns);
  }
  queue.run();
  if (std::exchange(meets_receives_, false)) {
    meet_receives();
  }
  return error;
}

/// One message, for which there is room. It is executed only once the whole list is there.
int SendQuirks::append(SendQueue& queue, const ibv_send_wr& wr) {
  SendRequest request = queue.describe(wr);
  if (wr.opcode == IBV_WR_RDMA_WRITE && core_.port->profile.knobs.writes_into_stream) {
    request.opcode = IBV_WR_SEND;
  }
  if (shuffle_ != nullptr) {
    return append_shuffled(queue, wr, request);
  }
  const uint32_t tail = core_.sends.tail.load(std::memory_order_relaxed);
  const SendEntry& entry = queue.append(wr, request.length);
  queue.store(tail, request);
  if (!decide(queue, tail)) {
    return ENOMEM;
  }
  if (counts_frames_) {
    frames_ += profile::frames_of(request.length);
  }
  queue.commit(entry);
  return 0;
}

int SendQuirks::append_pieces(SendQueue& queue, const ibv_send_wr& wr) {
  const uint32_t first = core_.sends.tail.load(std::memory_order_relaxed);
  const uint64_t line_free_ns = line_free_ns_;
  for (int i = 0; i < wr.num_sge; ++i) {
    ibv_send_wr one = wr;
    one.sg_list = wr.sg_list + i;
    one.num_sge = 1;
    if (const int error = append(queue, one)) {
      take_back(queue, first, line_free_ns);  // none of them is executed yet
      return error;
    }
  }
  return 0;
}

/// They were not executed, since that begins once the whole list is there.
void SendQuirks::take_back(SendQueue& queue, uint32_t first, uint64_t line_free_ns) {
  for (uint32_t index = core_.sends.tail.load(std::memory_order_relaxed); index != first;) {
    --index;
    count_out(queue.entry(index));
    drop_copy(queue.entry(index), index);
    const SendQuirk* const quirk = known_quirk(queue, index);
    extra_parts_ -= quirk != nullptr && quirk->is_part ? 1 : 0;
  }
  line_free_ns_ = line_free_ns;
  core_.sends.tail.store(first, std::memory_order_relaxed);
}

void SendQuirks::count_out(const SendEntry& entry) {
  if (counts_frames_) {
    frames_ -= std::min(frames_, profile::frames_of(entry.length));
  }
}

[[gnu::cold, gnu::noinline]] void SendQuirks::complete(SendQueue& queue, CompletionQueue& cq) {
  if (completes_early_ && !cq.is_in_service()) {  // a depth that nobody polls fills up the same way each time
    tell_early(queue, cq);
  }
  while (core_.sends.unfinished() != 0 && cq.has_room()) {
    const uint32_t done = core_.sends.done.load(std::memory_order_relaxed);
    const auto outcome = queue.outcome(done);
    if (!outcome) {
      return;
    }
    ibv_wc_status status = *outcome;
    const bool may_be_late = shuffle_ != nullptr || core_.faults.has(fault::Subject::completion);
    if (status == IBV_WC_SUCCESS && may_be_late && !is_due(queue, done, status)) {
      return;
    }
    const SendEntry& entry = queue.entry(done);
    const SendQuirk* const quirk = known_quirk(queue, done);
    if (quirk == nullptr || !quirk->is_told) {
      const bool is_told = entry.is_signaled || status != IBV_WC_SUCCESS;
      if (is_told && !is_rest_told_ && (quirk == nullptr || !quirk->is_missing)) {
        queue.push_completion(cq, entry, status);
      }
      count_out(entry);
    } else if (status != IBV_WC_SUCCESS) {
      count_undelivered(entry);
    }
    const bool is_part = quirk != nullptr && quirk->is_part;
    extra_parts_ -= is_part ? 1 : 0;
    is_rest_told_ = is_part && (is_rest_told_ || status != IBV_WC_SUCCESS);
    drop_copy(entry, done);
    told_ = told_ == done ? done + 1 : told_;
    queue.retire(done, status);
  }
}

void SendQuirks::reset() {
  of_entry_.clear();
  staged_.clear();
  mask_ = 0;
  staged_bytes_ = 0;
  told_ = 0;
  extra_parts_ = 0;
  is_rest_told_ = false;
  frames_ = 0;
  line_free_ns_ = 0;
}

}  // namespace ringbolt::device
