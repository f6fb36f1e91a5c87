// What a profile and faults say to receives, and how a device without carry places bytes.

#include "device/receive_quirks.h"

#include <time.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/copy.h"
#include "device/four_gib.h"
#include "device/frame_counts.h"
#include "device/receive_queue.h"
#include "device/send_shuffle.h"
#include "profile/frames.h"

namespace ringbolt::device {
namespace {

using profile::Rule;

constexpr uint64_t kPageBytes = 4096;

bool may_post_in(ibv_qp_state state, profile::ReceiveFrom from) {
  const bool is_early = state == IBV_QPS_INIT || (state == IBV_QPS_RTR && from == profile::ReceiveFrom::rts);
  return !is_early || from == profile::ReceiveFrom::init;
}

UnexpectedQueue::Bounds bounds_of(const profile::Knobs& knobs) {
  return knobs.no_receive == profile::NoReceive::park ? UnexpectedQueue::Bounds{knobs.park_slots, knobs.park_bytes}
                                                      : UnexpectedQueue::Bounds{0, 0};
}

uint64_t room_of(const CurrentReceive& current) {
  return length_of_pieces(current.wanted.data(), static_cast<int>(current.wanted_count));
}

}  // namespace

bool ReceiveQuirks::diverts(const Port& port, ibv_qp_type type, bool has_shared_queue) {
  return type == IBV_QPT_UC && !has_shared_queue && port.profile.knobs.no_receive != profile::NoReceive::wait;
}

ReceiveQuirks::ReceiveQuirks(QueuePairCore& core, uint32_t depth)
    : core_(core),
      depth_(depth),
      has_rules_(core.port->profile.takes_away()),
      counts_frames_(core.port->profile.limits.counts_frames),
      splits_pieces_(core.port->profile.knobs.splits_pieces),
      wraps_(core.port->profile.knobs.wrap_4_gib == profile::Wrap4Gib::corrupt),
      diverts_(diverts(*core.port, core.type, core.queues.shared != nullptr)),
      posted_(fault::Call::post_recv, core.number),
      unexpected_(bounds_of(core.port->profile.knobs)) {}

int ReceiveQuirks::push(ReceiveQueue& queue, const ibv_recv_wr& wr) {
  if (core_.faults.has(fault::Subject::call)) {
    if (const int error = posted_.judge(*core_.port, {&core_.number, 1})) {
      return error;
    }
  }
  if (const int error = has_rules_ ? check(queue, wr) : 0) {
    return error;
  }
  ReceiveRing& ring = queue.ring();
  if (!splits_pieces_ || wr.num_sge <= 1 || static_cast<uint32_t>(wr.num_sge) > ring.max_sge()) {
    return ring.push(wr);
  }
  if (ring.depth() - ring.count() < static_cast<uint32_t>(wr.num_sge)) {
    return ENOMEM;
  }
  for (int i = 0; i < wr.num_sge; ++i) {
    ibv_recv_wr one = wr;
    one.sg_list = wr.sg_list + i;
    one.num_sge = 1;
    ring.push(one);
  }
  return 0;
}

int ReceiveQuirks::check(ReceiveQueue& queue, const ibv_recv_wr& wr) {
  const Port& port = *core_.port;
  const profile::Limits& limits = port.profile.limits;
  const ibv_qp_state state = core_.state();
  if (!may_post_in(state, port.profile.knobs.receive_from)) {
    return port.refuse(Rule::receive_too_early, EINVAL,
                       fmt::format("a receive in the state {}", state == IBV_QPS_INIT ? "INIT" : "RTR"));
  }
  const bool takes_one = limits.posted_receive_sge != 0 && !splits_pieces_;
  if (takes_one && static_cast<uint32_t>(wr.num_sge) > limits.posted_receive_sge) {
    return port.refuse(Rule::sge_limit, EINVAL,
                       fmt::format("a receive of {} pieces, {} at most", wr.num_sge, limits.posted_receive_sge));
  }
  const bool fits = wr.num_sge >= 0 && static_cast<uint32_t>(wr.num_sge) <= queue.ring().max_sge();
  return counts_frames_ && fits ? check_frames(wr) : 0;  // too many pieces: the queue itself refuses them
}

int ReceiveQuirks::check_frames(const ibv_recv_wr& wr) {
  const Port& port = *core_.port;
  const uint32_t frames = frames_of_pieces(wr.sg_list, wr.num_sge, splits_pieces_);
  const uint32_t receives = splits_pieces_ ? std::max(1U, static_cast<uint32_t>(wr.num_sge)) : 1;
  if (frames_ + frames > postable_frames(port, depth_)) {
    const bool is_silent =
        port.profile.knobs.overruns_silently ||
        (core_.faults.has(fault::Subject::posting) && core_.faults.judge(fault::Subject::posting, port).is_refused);
    port.refuse(
        Rule::frame_budget, is_silent ? 0 : ENOMEM,
        fmt::format("a receive of {} frames beyond the {} that are posted, of {} granted", frames, frames_, depth_));
    if (!is_silent) {
      return kFramesExceeded;
    }
    for (uint32_t i = 0; i < receives; ++i) {
      overrun_.insert(posted_count_ + i);
    }
  }
  frames_ += frames;
  posted_count_ += receives;
  return 0;
}

void ReceiveQuirks::on_open(CurrentReceive& current) {
  if (counts_frames_) {
    frames_ -= std::min(frames_, profile::frames_of(room_of(current)));
    current.is_overrun = overrun_.erase(taken_count_++) != 0;
  }
}

ibv_wc_status ReceiveQuirks::judge(const CurrentReceive& current, uint32_t total) {
  const ibv_wc_status judgement = has_rules_ ? judge_by_rules(current, total) : IBV_WC_SUCCESS;
  return judgement == IBV_WC_SUCCESS ? judge_by_faults() : judgement;
}

ibv_wc_status ReceiveQuirks::judge_by_faults() {
  return core_.faults.has(fault::Subject::receive)
             ? static_cast<ibv_wc_status>(core_.faults.judge(fault::Subject::receive, *core_.port).status)
             : IBV_WC_SUCCESS;
}

ibv_wc_status ReceiveQuirks::judge_by_rules(const CurrentReceive& current, uint32_t total) {
  const Port& port = *core_.port;
  if (port.profile.knobs.refuses_late_regions) {
    for (uint32_t i = 0; i < current.wanted_count; ++i) {
      if (core_.process.region_ages().is_after(current.wanted[i].lkey, regions_at_rtr_)) {
        port.warn(Rule::late_mr, "a message for a region that was registered after RTR: local protection error");
        return IBV_WC_LOC_PROT_ERR;
      }
    }
  }
  if (!counts_frames_) {
    return IBV_WC_SUCCESS;
  }
  if (current.is_overrun) {
    return IBV_WC_LOC_LEN_ERR;
  }
  const uint64_t room = room_of(current);
  if (profile::frames_of(total) != profile::frames_of(room)) {
    port.warn(Rule::frame_mismatch, fmt::format("a message of {} bytes ({} frames) for a receive of {} ({} frames): "
                                                "local length error",
                                                total, profile::frames_of(total), room, profile::frames_of(room)));
    return IBV_WC_LOC_LEN_ERR;
  }
  return IBV_WC_SUCCESS;
}

/// Nothing of the program is harmed that it has not registered: where no region of the same domain that may be written
/// lies too low by 4 GiB, the bytes are gone. docs/profiles.md, wrap4g.
void ReceiveQuirks::place_wrapped(const CurrentReceive& current, uint32_t offset, const std::byte* data,
                                  uint32_t length) const {
  link::RegionTable& regions = core_.process.regions();
  for (uint32_t i = 0; i < current.wanted_count && length > 0; ++i) {
    const ibv_sge& piece = current.wanted[i];
    if (offset >= piece.length) {
      offset -= piece.length;
      continue;
    }
    link::Region region;
    if (!regions.find(piece.lkey, region)) {
      return;  // it was deregistered meanwhile
    }
    uint64_t target = region.host_first + (piece.addr - region.first) + offset;
    uint64_t left = std::min(piece.length - offset, length);
    length -= static_cast<uint32_t>(left);
    offset = 0;
    while (left > 0) {  // page by page, so that what is lost does not depend on how the message was cut on its way
      const uint64_t size = std::min(left, kPageBytes - target % kPageBytes);
      const uint64_t landing = without_carry(region.host_first, target);
      if (landing == target || regions.is_held(core_.pd.key, landing, size, IBV_ACCESS_LOCAL_WRITE)) {
        base::copy(reinterpret_cast<std::byte*>(landing), data, size);
      }
      data += size;
      target += size;
      left -= size;
    }
  }
}

bool ReceiveQuirks::place_in_parts(const CurrentReceive& current, uint32_t offset, const std::byte* data,
                                   uint32_t length) {
  constexpr uint64_t kMostPauseNs = 200'000;  // the poll that brings the message waits for it
  const shuffle::Shuffle* const shuffle = core_.faults.shuffle();
  const shuffle::Lot lot =
      shuffle == nullptr ? 0 : shuffle->draw(shuffle::Kind::order, place_of_receives(core_.number), ++placed_);
  const shuffle::Parts parts = shuffle::parts_of(lot, offset, length);
  if (parts.count == 1) {
    return false;
  }
  for (uint32_t i = 0; i < parts.count; ++i) {
    const auto [from, size] = parts.at[i];
    current.pieces.scatter(offset + from, data + from, size);
    if (i == 0) {
      const timespec pause{0, static_cast<long>(std::min(shuffle::delay_ns(lot), kMostPauseNs))};
      nanosleep(&pause, nullptr);
    }
  }
  return true;
}

bool ReceiveQuirks::is_coalescing(bool has_arrived) {
  const auto rule =
      core_.faults.has(fault::Subject::state) ? core_.faults.holding(fault::Kind::coalesce, *core_.port) : std::nullopt;
  if (!rule) {
    next_tick_ns_ = 0;
    return false;
  }
  const uint64_t now = base::now_ns();
  const uint64_t idle_ns = core_.cable.idle_ns(now);
  if (next_tick_ns_ == 0) {
    if (idle_ns < rule->after_ns) {
      return false;
    }
    next_tick_ns_ = now + rule->every_ns;
    has_tick_traffic_ = false;
  }
  if (now < next_tick_ns_) {
    return true;
  }
  if (has_arrived && has_tick_traffic_) {
    next_tick_ns_ = 0;
    return false;
  }
  has_tick_traffic_ = has_arrived;
  next_tick_ns_ += (now - next_tick_ns_) / rule->every_ns * rule->every_ns + rule->every_ns;
  return false;
}

void ReceiveQuirks::reset() {
  frames_ = 0;
  posted_count_ = taken_count_ = 0;
  overrun_.clear();
  unexpected_.clear();
  bypass_ = Bypass::none;
  next_tick_ns_ = 0;
  has_tick_traffic_ = false;
}

}  // namespace ringbolt::device
