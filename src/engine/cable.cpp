// Hot path: send(), tell(), post(), hear(), free(), post_freed() and message() do not allocate, lock or wait.
#include "engine/cable.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/copy.h"
#include "base/error.h"

namespace ringbolt::engine {
namespace {

static_assert(base::kHeadBytes >= kHeaderBytes);

constexpr uint32_t kFrameBytes = 4096;
// Sends that each queue pair is asked to hold; half as many of large messages.
constexpr uint32_t kSendDepth = 64;
/// Short messages complete together; of longer ones each is known to have left, which is little beside their bytes.
constexpr uint32_t kShortBytes = 8192;
constexpr uint32_t requests_per_signal(Size size) { return size == Size::large ? 4 : 8; }
static_assert(requests_per_signal(Size::large) <= kAheadOnRail, "a rail would wait for what nobody tells it");
// Of every connection: messages have numbers of their own, and which connection they are of is told by `incarnation`.
constexpr uint32_t kFirstPsn = 7;
/// What had been sent so long ago and is not here does not come any more. Beats may follow each other much faster.
constexpr uint64_t kBelatedNs = 150'000'000;

uint32_t frames_of(uint32_t length_bytes) { return (length_bytes + kFrameBytes - 1) / kFrameBytes; }

CreditPlan credit_plan(Size size, uint32_t n_hop_classes) {
  const bool is_small = size == Size::small;
  return {is_small ? kSmallReceives : kLargeReceives, n_hop_classes, 1, is_small ? kKeptForControl : 0};
}

}  // namespace

Cable::Cable(Device& device, const CablePlan& plan, uint16_t index, SlabLayout& layout)
    : device_(device), plan_(plan), index_(index) {
  for (const Size size : kSizes) {
    make_end(size, layout);
  }
}

/// Some drivers keep regions of queue pairs that are destroyed in ERR.
Cable::~Cable() {
  for (End& end : ends_) {
    if (end.connected && !failure_.empty()) {
      try {
        end.unconnected.emplace(std::move(*end.connected).reset());
      } catch (const base::Error&) {
        continue;  // then it goes as it is
      }
    }
  }
}

void Cable::make_end(Size size, SlabLayout& layout) {
  const CreditPlan credits = credit_plan(size, plan_.n_hop_classes);
  const uint32_t slot_bytes = size == Size::small ? kSmallBytes : kLargeBytes;
  End end{layout.add_row(slot_bytes, credits.n_receives), SenderCredit(credits)};
  end.class_of.resize(credits.n_receives);
  end.is_held.resize(credits.n_receives);
  verbs::QueuePairPlan wanted;
  wanted.type = plan_.type;
  wanted.send_cq = &device_.cq();
  wanted.receive_cq = &device_.cq();
  const uint32_t unit = plan_.counts_frames ? frames_of(slot_bytes) : 1;
  wanted.send_depth = kSendDepth * (size == Size::small ? 1 : unit) / (size == Size::small ? 1 : 2);
  wanted.receive_depth = credits.n_receives * unit;
  end.unconnected.emplace(device_.pd(), wanted);
  end.send_depth = std::min(kSendDepth, end.unconnected->send_depth() / unit);
  end.in_flight.resize(end.send_depth);
  end.request.num_sge = 1;
  end.request.opcode = IBV_WR_SEND;
  if (end.unconnected->receive_depth() < wanted.receive_depth || end.send_depth < 2 * requests_per_signal(size)) {
    throw base::Error(ENOMEM, "ibv_create_qp", plan_.name,
                      fmt::format("the device grants {} sends and {} receives where {} and {} are needed",
                                  end.unconnected->send_depth(), end.unconnected->receive_depth(), wanted.send_depth,
                                  wanted.receive_depth));
  }
  end.unconnected->to_init(path());
  end.qp_number = end.unconnected->number();
  ends_.push_back(std::move(end));
}

verbs::Path Cable::path() const {
  verbs::Path path;
  path.port = plan_.port;
  path.gid_index = plan_.gid_index;
  path.mtu = plan_.mtu;
  path.hop_limit = plan_.hop_limit;
  path.psn = kFirstPsn;
  return path;
}

CableAddress Cable::address(const ibv_gid& gid, uint16_t lid) const {
  CableAddress address{gid, lid, {}, {}};
  for (const Size size : kSizes) {
    const End& end = ends_[index(size)];
    address.qp_number[index(size)] = end.qp_number;
    address.psn[index(size)] = kFirstPsn;
  }
  return address;
}

void Connecting::run() {
  for (const Size size : kSizes) {
    const auto i = static_cast<size_t>(size);
    End& end = ends_[i];
    end.unconnected->to_rtr({peer_.qp_number[i], peer_.psn[i], peer_.lid, peer_.gid});
    end.connected.emplace(std::move(*end.unconnected).to_rts());
    end.unconnected.reset();
    reads_in_place_ = reads_in_place_ && end.connected->receive_in_place();
  }
}

Connecting Cable::begin_connecting(const CableAddress& peer, std::span<std::byte> slab) {
  RINGBOLT_ASSERT(!is_alive_);
  slab_ = slab;
  Connecting connecting;
  connecting.peer_ = peer;
  connecting.reads_in_place_ = plan_.may_read_in_place;
  for (const Size size : kSizes) {
    End& end = ends_[index(size)];
    end.n_freed = 0;  // what has been freed since reset() is among those that are not held
    for (uint32_t slot = 0; slot < end.receives.count; ++slot) {
      const Freed receive{static_cast<uint16_t>(slot)};
      if (!end.is_held[slot]) {
        post_receives(size, {&receive, 1});
      }
    }
    connecting.ends_[index(size)].unconnected = std::exchange(end.unconnected, std::nullopt);
  }
  return connecting;
}

void Cable::end_connecting(Connecting&& connecting) {
  bool is_connected = true;
  for (const Size size : kSizes) {
    End& end = ends_[index(size)];
    end.unconnected = std::move(connecting.ends_[index(size)].unconnected);
    end.connected = std::move(connecting.ends_[index(size)].connected);
    is_connected = is_connected && end.connected;
  }
  may_be_in_place_ = reads_in_place_ = connecting.reads_in_place_;
  if (!failure_.empty()) {
    throw base::Error(EIO, "ibv_post_recv", plan_.name, failure_);
  }
  is_alive_ = is_connected && incarnation_ == kFirstIncarnation;  // later ones: when both ends are connected
}

void Cable::connect(const CableAddress& peer, std::span<std::byte> slab) {
  Connecting connecting = begin_connecting(peer, slab);
  try {
    connecting.run();
  } catch (const base::Error&) {
    end_connecting(std::move(connecting));
    throw;
  }
  end_connecting(std::move(connecting));
}

std::vector<RequestId> Cable::reset(uint16_t incarnation) {
  RINGBOLT_ASSERT(!is_alive_);
  reset_queue_pairs();  // from here on the device reads and writes nothing of the slab
  std::vector<RequestId> left;
  for (const Size size : kSizes) {
    End& end = ends_[index(size)];
    for (; end.n_in_flight > 0; --end.n_in_flight) {
      left.push_back(end.in_flight[end.first_in_flight]);
      end.first_in_flight = (end.first_in_flight + 1) % end.send_depth;
    }
    end.sender = SenderCredit(credit_plan(size, plan_.n_hop_classes));
    end.receiver = {};
    end.sends_posted = 0;
    end.n_unsignalled = 0;
    end.n_freed = 0;
    end.sent_by_peer = 0;
    end.sent_by_peer_ns = 0;
    std::fill(end.class_of.begin(), end.class_of.end(), kNotOwed);  // what is held is of the connection before
  }
  incarnation_ = incarnation;
  is_read_in_place_ = false;
  failure_.clear();
  return left;
}

void Cable::reset_queue_pairs() {
  for (const Size size : kSizes) {
    End& end = ends_[index(size)];
    if (end.connected) {
      end.unconnected.emplace(std::move(*end.connected).reset());
      end.connected.reset();
    } else {
      end.unconnected->to_reset();
    }
    end.unconnected->to_init(path());
  }
}

void Cable::hear_done(const RequestId& id) {
  End& end = ends_[index(id.size)];
  end.sends_posted -= std::min<uint32_t>(id.n_requests, end.sends_posted);  // those of a failed cable all complete
  if (id.is_relayed || id.is_unsequenced) {
    end.first_in_flight = (end.first_in_flight + 1) % end.send_depth;
    --end.n_in_flight;
  }
}

/// The first reason stays.
void Cable::fail(std::string why) {
  is_alive_ = false;
  if (!failure_.empty()) {
    return;
  }
  failure_ = std::move(why);
  for (const End& end : ends_) {
    if (end.connected) {
      (void)end.connected->to_error();  // where it is refused, sends come back when the cable is connected anew
    }
  }
}

void Cable::fail_call(const char* call, int error) {
  fail(fmt::format("{}: {}: {}", plan_.name, call, base::reason_of(error)));
}

void Cable::fail_dishonest(uint32_t credit_class) {
  fail(fmt::format("{}: the peer frees more receives of class {} than were taken", plan_.name, credit_class));
}

bool Cable::send(Size size, uint32_t buffer_class, ChunkHeader& header, size_t offset, const RequestId& id) {
  const Told told = tell(size, buffer_class);
  header.incarnation = incarnation_;
  header.reads_in_place = reads_in_place_;
  header.cable_number = told.cable_number;
  header.credit_class = told.credit_class;
  header.freed_small = told.freed_small;
  header.freed_large = told.freed_large;
  emit(header, std::span<std::byte, kHeaderBytes>(slab_.data() + offset, kHeaderBytes));
  return post(size, offset, static_cast<uint32_t>(kHeaderBytes) + header.length_bytes, header.wants_ack, id);
}

Cable::Told Cable::tell(Size size, uint32_t buffer_class) {
  Told told;
  told.cable_number = ends_[index(size)].sender.send(buffer_class);
  ReceiverCredit& small = receiver(Size::small);
  ReceiverCredit& large = receiver(Size::large);
  // One class's credits ride along, in turn those that the peer does not know yet.
  const uint32_t news = small.untold_classes() | large.untold_classes();
  if (news != 0) {
    const uint32_t later = news & (~1U << told_class_);
    told_class_ = static_cast<uint32_t>(std::countr_zero(later != 0 ? later : news));
    small.tell(told_class_);
    large.tell(told_class_);
  }
  told.credit_class = static_cast<uint8_t>(told_class_);
  told.freed_small = small.freed(told_class_);
  told.freed_large = large.freed(told_class_);
  return told;
}

bool Cable::post(Size size, size_t offset, uint32_t length_bytes, bool is_awaited, const RequestId& id) {
  End& end = ends_[index(size)];
  if (plan_.counts_frames) {
    const uint32_t slot_bytes = end.receives.slot_bytes;
    length_bytes = std::max(length_bytes, (frames_of(slot_bytes) - 1) * kFrameBytes + 1);
  }
  ++end.sends_posted;
  ++end.serial;
  ++end.n_unsignalled;
  const bool is_signalled = id.is_relayed || id.is_unsequenced || is_awaited || length_bytes > kShortBytes ||
                            end.n_unsignalled == requests_per_signal(size);
  const RequestId posted{false,
                         size,
                         index_,
                         id.slot,
                         id.is_relayed,
                         id.is_unsequenced,
                         id.from_cable,
                         static_cast<uint8_t>(end.n_unsignalled),
                         static_cast<uint8_t>(incarnation_ % kToldIncarnations)};
  if (is_signalled) {
    end.n_unsignalled = 0;
  }
  end.piece = device_.piece(offset, length_bytes);
  end.request.wr_id = emit(posted);
  end.request.sg_list = &end.piece;
  end.request.send_flags = is_signalled ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U;
  if (may_be_in_place_ && is_read_in_place_ && !id.is_relayed && !id.is_unsequenced) {
    end.request.send_flags |=
        base::kStaysInPlace;  // it is kept until it is acknowledged; what is relayed, only until sent
  }
  if (const int error = end.connected->post_send(end.request); error != 0) [[unlikely]] {
    fail_call("ibv_post_send", error);
    return false;
  }
  if (id.is_relayed || id.is_unsequenced) {
    end.in_flight[(end.first_in_flight + end.n_in_flight++) % end.send_depth] = posted;
  }
  sent_bytes += length_bytes;
  return true;
}

std::span<const std::byte> Cable::message(Size size, uint32_t slot, uint32_t length_bytes,
                                          const std::byte* place) const {
  const SlotRow& row = ends_[index(size)].receives;
  return {place != nullptr ? place : slab_.data() + row.offset_of(slot), std::min(length_bytes, row.slot_bytes)};
}

std::span<const std::byte> Cable::head(Size size, uint32_t slot, uint32_t length_bytes) const {
  return {slab_.data() + offset_of(size, slot), std::min(length_bytes, base::kHeadBytes)};
}

std::span<const std::byte> Cable::fetch(Size size, uint32_t slot, std::span<const std::byte> message) {
  std::byte* to = slab_.data() + ends_[index(size)].receives.offset_of(slot);
  base::copy(to, message.data(), message.size());
  return {to, message.size()};
}

bool Cable::hear(Size size, uint32_t slot, const ChunkHeader& header) {
  if (header.incarnation != incarnation_ || header.credit_class >= kClasses) {
    return false;
  }
  const bool is_owed = receiver(size).receive(header.cable_number);
  const uint32_t buffer_class = header.kind == Kind::beat ? kControlClass : header.hops_done;
  ends_[index(size)].class_of[slot] = static_cast<uint8_t>(is_owed ? buffer_class : kNotOwed);
  is_read_in_place_ = header.reads_in_place;
  was_read_in_place_ = was_read_in_place_ || is_read_in_place_;
  received_bytes += kHeaderBytes + header.length_bytes;
  const bool is_honest = sender(Size::small).hear_freed(header.credit_class, header.freed_small) &&
                         sender(Size::large).hear_freed(header.credit_class, header.freed_large);
  if (!is_honest) {
    fail_dishonest(header.credit_class);
  }
  return true;
}

void Cable::put_back(Size size, uint32_t slot, uint8_t buffer_class) {
  End& end = ends_[index(size)];
  end.is_held[slot] = 0;
  --end.n_held;
  if (!failure_.empty()) {
    return;  // with all others when it is connected anew
  }
  end.freed[end.n_freed++] = {static_cast<uint16_t>(slot), buffer_class};
  if (end.n_freed >= (size == Size::small ? kMostFreed : kReceivesPerPost)) {
    post_freed();
  }
}

void Cable::post_freed() {
  for (const Size size : kSizes) {
    End& end = ends_[index(size)];
    if (!end.connected || !failure_.empty()) {
      continue;  // while it is being connected they wait
    }
    while (end.n_freed > 0) {
      const uint32_t n = std::min(end.n_freed, kReceivesPerPost);
      const auto freed = std::span(end.freed).subspan(end.n_freed - n, n);
      post_receives(size, freed);
      for (const Freed& receive : freed) {
        if (receive.buffer_class != kNotOwed) {
          receiver(size).free(receive.buffer_class);
        }
      }
      end.n_freed -= n;
    }
  }
}

/// kReceivesPerPost at most.
void Cable::post_receives(Size size, std::span<const Freed> receives) {
  End& end = ends_[index(size)];
  std::array<ibv_sge, kReceivesPerPost> pieces;
  std::array<ibv_recv_wr, kReceivesPerPost> requests;
  RequestId id;
  id.is_receive = true;
  id.size = size;
  id.cable = index_;
  id.incarnation = static_cast<uint8_t>(incarnation_ % kToldIncarnations);
  for (size_t i = 0; i < receives.size(); ++i) {
    id.slot = receives[i].slot;
    pieces[i] = device_.piece(end.receives.offset_of(id.slot), end.receives.slot_bytes);
    requests[i] = {emit(id), i + 1 < receives.size() ? &requests[i + 1] : nullptr, &pieces[i], 1};
  }
  const int error =
      end.connected ? end.connected->post_receive(requests[0]) : end.unconnected->post_receive(requests[0]);
  if (error != 0) [[unlikely]] {
    fail_call("ibv_post_recv", error);
  }
}

CableReport Cable::report() const {
  CableReport report;
  for (const Size size : kSizes) {
    // What the device has not sent yet waits for the cable, perhaps for long.
    report.sent[index(size)] = ends_[index(size)].sender.number() - ends_[index(size)].sends_posted;
    report.lost[index(size)] = ends_[index(size)].receiver.lost();
  }
  return report;
}

bool Cable::hear_report(const CableReport& report, uint64_t now_ns) {
  for (const Size size : kSizes) {
    End& end = ends_[index(size)];
    if (now_ns - end.sent_by_peer_ns >= kBelatedNs) {
      if (!end.receiver.miss_before(end.sent_by_peer)) {
        return false;
      }
      end.sent_by_peer = report.sent[index(size)];
      end.sent_by_peer_ns = now_ns;
    }
    if (!end.sender.hear_lost(report.lost[index(size)])) {
      return false;
    }
  }
  return true;
}

bool Cable::has_credits_to_tell() const {
  const ReceiverCredit& small = ends_[index(Size::small)].receiver;
  const ReceiverCredit& large = ends_[index(Size::large)].receiver;
  return small.n_untold() >= kSmallReceives / 4 || large.n_untold() >= kLargeReceives / 4 ||
         small.n_untold(kControlClass) >= kKeptForControl / 2;
}

}  // namespace ringbolt::engine
