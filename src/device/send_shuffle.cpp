// Sends under RINGBOLT_SHUFFLE: what is decided of each, and how the send queue carries it out. docs/shuffle.md is the
// page for users.

#include "device/send_shuffle.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include <fmt/format.h>

#include "base/clock.h"
#include "device/explanations.h"
#include "device/failure_notes.h"
#include "device/failures.h"
#include "device/limits.h"
#include "device/queue_pair_transport.h"
#include "device/send_queue.h"
#include "device/send_quirks.h"
#include "profile/frames.h"

namespace ringbolt::device {
namespace {

using shuffle::Kind;

// How long a post waits to see whether the peer has a receive: its service thread has to wake up for that.
constexpr uint64_t kMeetingNs = 3'000'000;
constexpr timespec kMeetingPause{0, 20'000};

bool fetches(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

bool carries(ibv_wr_opcode opcode) {
  return !fetches(opcode) && opcode != IBV_WR_LOCAL_INV && opcode != IBV_WR_BIND_MW;
}

bool meets_a_receive(ibv_wr_opcode opcode) { return carries(opcode) && opcode != IBV_WR_RDMA_WRITE; }

bool can_be_parted(const SendRequest& request) {
  const bool has_remote_memory = request.opcode == IBV_WR_RDMA_WRITE || request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
                                 request.opcode == IBV_WR_RDMA_READ;
  return has_remote_memory && request.length <= kMaxMessageBytes;
}

/// Those bytes of the request alone; its pieces are put into `pieces`.
SendRequest part_of(const SendRequest& request, const shuffle::Part& part, std::array<ibv_sge, kMaxSge>& pieces) {
  SendRequest some = request;
  some.length = part.length;
  some.remote_address += part.offset;
  some.pieces = pieces.data();
  some.pieces_count = 0;
  uint32_t skipped = part.offset;
  uint32_t left = part.length;
  for (uint32_t i = 0; i < request.pieces_count && left > 0; ++i) {
    const ibv_sge& piece = request.pieces[i];
    if (skipped >= piece.length) {
      skipped -= piece.length;
      continue;
    }
    const uint32_t length = std::min(left, piece.length - skipped);
    pieces[some.pieces_count++] = {piece.addr + skipped, length, piece.lkey};
    skipped = 0;
    left -= length;
  }
  return some;
}

/// The lock is free meanwhile: the service thread that looks may be ours, and want it. Who posts holds no other.
void pause_unlocked(HalfLocks& locks) RINGBOLT_NOT_ANALYSED {
  locks.send.unlock();
  nanosleep(&kMeetingPause, nullptr);
  locks.send.lock();
}

}  // namespace

std::unique_ptr<SendShuffle> SendShuffle::create(const QueuePairCore& core) {
  return core.faults.shuffle() == nullptr ? nullptr : std::make_unique<SendShuffle>(core);
}

SendShuffle::Course SendShuffle::course_of(const SendRequest& request, bool may_part) {
  const uint64_t number = ++posted_;
  const auto lot = [&](Kind kind) { return shuffle_.draw(kind, place_of_sends(core_.number), number); };
  const uint32_t index = core_.sends.tail.load(std::memory_order_relaxed);
  const uint32_t done = core_.sends.done.load(std::memory_order_relaxed);
  has_open_read_ = has_open_read_ && static_cast<int32_t>(last_read_ - done) >= 0;

  Course course;
  course.parts.at[0] = {0, request.length};
  course.parts.count = 1;
  if (may_part && can_be_parted(request)) {
    const shuffle::Lot order = lot(Kind::order);
    course.parts = shuffle::parts_of(order, request.remote_address, request.length);
    course.between_ns = shuffle::delay_ns(order);
    if (course.parts.count > 1 && request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
      course.parts.at[1] = {0, request.length};
      course.parts.count = 2;
      course.is_whole_at_last = true;
    }
  }
  // Whoever waits for no fence may have read its memory before the READ has put something there.
  const shuffle::Lot fence = lot(Kind::fence);
  const bool may_pass = carries(request.opcode) && !request.is_fenced;
  const bool passes_read = may_pass && has_open_read_;
  const shuffle::Lot buffers = passes_read ? 0 : lot(Kind::buffers);
  const shuffle::Lot pairs = lot(Kind::pairs);
  course.hold_ns = std::max(shuffle::delay_ns(buffers), shuffle::delay_ns(pairs));
  course.is_copied = passes_read || (pairs != 0 && buffers == 0 && may_pass);
  if (fence != 0 && fetches(request.opcode)) {
    course.hold_ns = std::max(course.hold_ns, shuffle::delay_ns(fence));
    has_open_read_ = true;
    last_read_ = index + course.parts.count - 1;
  }
  course.late_ns = shuffle::delay_ns(lot(Kind::acks));
  course.meets_receives = core_.type == IBV_QPT_RC && meets_a_receive(request.opcode) && lot(Kind::rnr) != 0;
  return course;
}

int SendQuirks::append_shuffled(SendQueue& queue, const ibv_send_wr& wr, const SendRequest& request) {
  // The notes of a list lie where its requests would be if each took one place.
  const bool has_room = core_.sends.unfinished() + shuffle::kMostParts <= queue.slots();
  const bool may_part = core_.type != IBV_QPT_UD && !counts_frames_ && !completes_early_ && has_room &&
                        (core_.notes == nullptr || wr.next == nullptr);
  const SendShuffle::Course course = shuffle_->course_of(request, may_part);
  if (!make_room(queue)) {
    return ENOMEM;
  }
  const uint32_t first = core_.sends.tail.load(std::memory_order_relaxed);
  const uint64_t line_free_ns = line_free_ns_;
  for (uint32_t i = 0; i < course.parts.count; ++i) {
    if (const int error = append_part(queue, wr, request, course, i, first)) {
      take_back(queue, first, line_free_ns);  // none of them is executed yet
      return error;
    }
  }
  if (counts_frames_) {
    frames_ += profile::frames_of(request.length);
  }
  meets_receives_ = meets_receives_ || course.meets_receives;
  return 0;
}

int SendQuirks::append_part(SendQueue& queue, const ibv_send_wr& wr, const SendRequest& request,
                            const SendShuffle::Course& course, uint32_t part, uint32_t first) {
  const bool is_last = part + 1 == course.parts.count;
  const uint32_t index = core_.sends.tail.load(std::memory_order_relaxed);
  SendEntry& entry = queue.append(wr, request.length);
  entry.is_signaled = entry.is_signaled && is_last;
  std::array<ibv_sge, kMaxSge> pieces;
  SendRequest some = course.parts.count == 1 ? request : part_of(request, course.parts.at[part], pieces);
  if (!is_last && course.is_whole_at_last) {
    some.opcode = IBV_WR_RDMA_WRITE;
  }
  queue.store(index, some);
  if (!decide(queue, index)) {
    return ENOMEM;
  }
  SendQuirk& quirk = quirk_of(queue, index);
  try {
    if (course.is_copied && !quirk.is_staged) {
      stage(queue, index);
    }
  } catch (const std::bad_alloc&) {  // then it leaves with what lies there when it does
  }
  quirk.departs_ns = std::max(quirk.departs_ns, base::now_ns()) + course.hold_ns;
  quirk.between_ns = part == 1 ? course.between_ns : 0;
  quirk.late_ns = is_last ? course.late_ns : 0;
  quirk.is_part = !is_last;
  extra_parts_ += is_last ? 0 : 1;
  if (part != 0) {
    core_.when_noting([&](QueuePairNotes& notes) RINGBOLT_NOT_ANALYSED {
      const QueuePairNotes::Send noted = notes.send(queue.place(first));
      notes.note_send(queue.place(index), wr, noted.wr_id, {noted.site, noted.ticks}, noted.peer_notes);
    });
  }
  queue.commit(entry);
  return 0;
}

/// A card's SEND meets the receives that are there when it arrives; in memory it waits until its receiver looks. So
/// that it arrives now, the peer's service thread looks.
void SendQuirks::meet_receives() {
  using Reception = QueuePairTransport::Reception;
  const uint64_t deadline_ns = base::now_ns() + kMeetingNs;
  Reception reception = Reception::unknown;
  for (bool hurries = true; reception == Reception::unknown && base::now_ns() < deadline_ns; hurries = false) {
    if (!hurries) {
      pause_unlocked(core_.locks);
    }
    QueuePairTransport* const transport = core_.transport.load(std::memory_order_relaxed);
    if (transport == nullptr || core_.state() != IBV_QPS_RTS || core_.sends.has_queued()) {
      return;
    }
    reception = transport->reception(hurries);
  }
  if (reception == Reception::starved && core_.attributes.rnr_retry == 0) {
    core_.counts.note(kSharedReceivedRnr);
    core_.when_noting([&](QueuePairNotes& notes) {
      notes.say_why_send({fmt::format("{} had no receive for it when it came, and rnr_retry is 0", peer_text(core_)),
                          remedy_of(IBV_WC_RNR_RETRY_EXC_ERR)});
    });
    core_.enter_error(IBV_WC_RNR_RETRY_EXC_ERR);
  }
}

void SendQuirks::let_go(SendQueue& queue) {
  if (shuffle_ == nullptr) {
    return;
  }
  const uint32_t tail = core_.sends.tail.load(std::memory_order_relaxed);
  for (uint32_t index = core_.sends.next.load(std::memory_order_relaxed); index != tail; ++index) {
    if (SendQuirk* const quirk = known_quirk(queue, index)) {
      quirk->departs_ns = quirk->between_ns = 0;
    }
  }
  queue.run();
}

}  // namespace ringbolt::device
