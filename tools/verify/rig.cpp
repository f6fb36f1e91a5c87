#include "verify/rig.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "failure.h"
#include "pair/values.h"
#include "pattern.h"

namespace ringbolt::tools::verify {
namespace {

constexpr size_t kLineBytes = 64;

size_t whole_lines(size_t bytes) { return pair::Region::rounded_up(bytes, kLineBytes); }

}  // namespace

Rig::Rig(const Context& context, const RigShape& shape, uint16_t epoch)
    : context_(context), shape_(shape), epoch_(epoch) {
  lay_out();
  make_queues();
  connect();
}

Rig::~Rig() { (void)take_down(false); }

void Rig::lay_out() {
  // Step::makes_sense() keeps all products far below 2^64: nothing wraps before the limit is looked at.
  const size_t lanes = step().queue_pairs;
  size_t at = 0;
  for (uint32_t index = 0; index < lanes; ++index) {
    Place& place = places_.emplace_back();
    place.most_bytes = sizes_of(step(), index).most;
    const size_t slot_bytes = std::max<uint64_t>(place.most_bytes, 8);
    place.send_offset = at;
    place.send_stride = whole_lines(slot_bytes);
    at += place.send_stride * shape_.sends;
    place.receive_offset = at;
    place.receive_stride = whole_lines(header_bytes() + slot_bytes) + 2 * kGuardBytes;
    at += place.receive_stride * shape_.receives;
  }
  area_offset_ = pair::Region::rounded_up(at, pair::Region::kPageBytes);
  area_stride_ = whole_lines(shape_.area_bytes) + (shape_.area_bytes == 0 ? 0 : 2 * kGuardBytes);
  constexpr size_t kMostRigBytes = size_t{4} << 30U;
  memory_ = pair::Region(context_.device, area_offset_ + area_stride_ * lanes + kLineBytes, shape_.access,
                         "--max, -t, -r or -q", kMostRigBytes);
  fill({memory_.data() + area_offset_, area_stride_ * lanes}, 0, mixed(step().seed));
  for (uint32_t index = 0; index < lanes; ++index) {
    for (uint32_t slot = 0; slot < shape_.receives; ++slot) {
      prepare(index, slot);
    }
  }
}

void Rig::make_queues() {
  const auto within = [](uint64_t wanted, int most) {
    return static_cast<uint32_t>(std::clamp<uint64_t>(wanted, 1, static_cast<uint64_t>(std::max(most, 1))));
  };
  send_cq_ =
      context_.device.make_cq(within(uint64_t{step().queue_pairs} * shape_.sends, context_.device.limits().max_cqe));
  receive_cq_ =
      context_.device.make_cq(within(uint64_t{step().queue_pairs} * shape_.receives, context_.device.limits().max_cqe));
  for (uint32_t index = 0; index < step().queue_pairs; ++index) {
    pair::QueuePairPlan plan{step().transport, send_cq(), receive_cq()};
    plan.send_depth = within(shape_.sends, context_.device.limits().max_qp_wr);
    plan.receive_depth = within(shape_.receives, context_.device.limits().max_qp_wr);
    plan.message_bytes = places_[index].most_bytes;
    plan.remote_access = shape_.access;
    queue_pairs_.emplace_back(context_.device, plan);
  }
}

/// True if every queue pair has some, or none is wanted. A device may take fewer than were asked for, or none yet.
bool Rig::post_first_receives() {
  receives_ = shape_.receives;
  for (uint32_t index = 0; index < queue_pairs(); ++index) {
    for (uint32_t slot = 0; slot < receives_; ++slot) {
      if (queue_pairs_[index].try_post_receive(buffer(index, slot), local_key(), uint64_t{index} << 32U | slot) != 0) {
        receives_ = slot;
      }
    }
  }
  return receives_ != 0 || shape_.receives == 0;
}

void Rig::connect() {
  pair::Offer mine;
  mine.window = mine.send_slots = 1;  // told when it is known
  mine.receive_address = memory_.address() + area_offset_;
  mine.remote_key = memory_.remote_key();
  // Some devices take receives before they are connected, some after.
  const bool has_receives = post_first_receives();
  std::vector<pair::QueuePair*> all;
  for (pair::QueuePair& one : queue_pairs_) {
    all.push_back(&one);
  }
  theirs_ = pair::connect_all(context_.device, all, mine, context_.choice, context_.peer);
  if (!has_receives && !post_first_receives()) {
    throw ProbeFailure(fmt::format("{} takes not even one receive of {} bytes: give a smaller --max",
                                   context_.device.name(), step().most_bytes));
  }
  their_receives_ = pair::exchange(context_.peer, "connected", receives_, "its posted receives");
}

std::string Rig::name(uint32_t queue_pair) const {
  return queue_pair < queue_pairs()
             ? fmt::format("queue pair {} (number {:#x})", queue_pair, queue_pairs_[queue_pair].address().number)
             : fmt::format("queue pair {}, which there is not", queue_pair);
}

uint64_t Rig::pattern(uint32_t queue_pair, uint64_t index) const {
  // "guar" in ASCII, so that it is no message's pattern.
  return mixed(mixed(step().seed ^ 0x67756172) + (uint64_t{queue_pair} << 32U | index));
}

std::span<std::byte> Rig::whole(uint32_t queue_pair, uint64_t index) const {
  const Place& place = places_[queue_pair];
  return {memory_.data() + place.receive_offset + place.receive_stride * index, place.receive_stride};
}

std::span<std::byte> Rig::buffer(uint32_t queue_pair, uint64_t index) const {
  return whole(queue_pair, index)
      .subspan(kGuardBytes, header_bytes() + std::max<uint64_t>(places_[queue_pair].most_bytes, 1));
}

std::span<std::byte> Rig::send_slot(uint32_t queue_pair, uint64_t index) const {
  const Place& place = places_[queue_pair];
  return {memory_.data() + place.send_offset + place.send_stride * index, place.most_bytes};
}

std::span<std::byte> Rig::receive_slot(uint32_t queue_pair, uint64_t index) const {
  return whole(queue_pair, index).subspan(kGuardBytes + header_bytes(), places_[queue_pair].most_bytes);
}

std::span<std::byte> Rig::area(uint32_t queue_pair) const {
  return {memory_.data() + area_offset_ + area_stride_ * queue_pair, area_stride_};
}

uint64_t Rig::remote_area(uint32_t queue_pair) const { return theirs_.receive_address + area_stride_ * queue_pair; }

void Rig::prepare(uint32_t queue_pair, uint64_t index, uint64_t bytes) const {
  const std::span<std::byte> all = whole(queue_pair, index);
  const size_t begin = kGuardBytes + header_bytes();
  if (bytes >= all.size() - begin) {
    fill(all, 0, pattern(queue_pair, index));
  } else {
    fill(all.subspan(begin, bytes), begin, pattern(queue_pair, index));
  }
}

std::optional<OutsideDamage> Rig::find_outside(uint32_t queue_pair, uint64_t index, uint64_t explained) const {
  const std::span<const std::byte> all = whole(queue_pair, index);
  const uint64_t base = pattern(queue_pair, index);
  const size_t begin = kGuardBytes + header_bytes();
  const size_t behind = std::min<uint64_t>(begin + explained, all.size());
  if (is_filled(all.first(kGuardBytes), 0, base) && is_filled(all.subspan(behind), behind, base)) {
    return std::nullopt;
  }
  OutsideDamage damage;
  if (const auto before = difference(all.first(kGuardBytes), 0, base)) {
    damage = {static_cast<int64_t>(before->first) - static_cast<int64_t>(kGuardBytes), before->bytes};
  }
  if (const auto after = difference(all.subspan(behind), behind, base)) {
    damage.first = damage.bytes == 0 ? static_cast<int64_t>(behind - begin + after->first) : damage.first;
    damage.bytes += after->bytes;
  }
  return damage;
}

void Rig::post_receive(uint32_t queue_pair, uint64_t index) const {
  queue_pairs_[queue_pair].post_receive(buffer(queue_pair, index), local_key(), uint64_t{queue_pair} << 32U | index);
}

int Rig::post_send(uint32_t queue_pair, ibv_send_wr& request, std::span<std::byte> local) const {
  ibv_sge sge{reinterpret_cast<uintptr_t>(local.data()), static_cast<uint32_t>(local.size()), local_key()};
  request.sg_list = &sge;
  request.num_sge = local.empty() ? 0 : 1;
  request.send_flags |= IBV_SEND_SIGNALED;
  queue_pairs_[queue_pair].address_request(request);
  ibv_send_wr* bad = nullptr;
  return std::abs(ibv_post_send(queue_pairs_[queue_pair].get(), &request, &bad));
}

size_t Rig::poll(ibv_cq* cq, std::span<ibv_wc> completions) const {
  const int count = ibv_poll_cq(cq, static_cast<int>(completions.size()), completions.data());
  if (count < 0) {
    pair::fail_call("ibv_poll_cq", count);
  }
  return static_cast<size_t>(count);
}

std::vector<std::string> Rig::take_down(bool is_reversed) {
  const verbs::Calls& verbs = context_.device.verbs();
  std::vector<std::string> refused;
  const auto note = [&](const std::string& what, int error) {
    if (error != 0) {
      refused.push_back(fmt::format("{} is refused: {}", what, base::reason_of(std::abs(error))));
    }
  };
  if (is_reversed) {
    std::reverse(queue_pairs_.begin(), queue_pairs_.end());
  }
  for (pair::QueuePair& one : queue_pairs_) {
    const uint32_t number = one.address().number;
    one.drop_path();
    note(fmt::format("ibv_destroy_qp of number {:#x}", number), verbs.destroy_qp(one.release()));
  }
  queue_pairs_.clear();
  if (receive_cq_) {
    note("ibv_destroy_cq, once its queue pairs are gone,", verbs.destroy_cq(receive_cq_.release()));
  }
  if (send_cq_) {
    note("ibv_destroy_cq, once its queue pairs are gone,", verbs.destroy_cq(send_cq_.release()));
  }
  note("ibv_dereg_mr, once its queue pairs are gone,", memory_.drop(context_.device));
  return refused;
}

}  // namespace ringbolt::tools::verify
