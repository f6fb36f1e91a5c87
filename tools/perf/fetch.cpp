// Hot path: no allocation, lock or system call for an operation.
#include "perf/fetch.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/clock.h"
#include "perf/message.h"

namespace ringbolt::tools::perf {

uint64_t atomic_value(uint64_t count) { return count * 0x9e3779b97f4a7c15U; }

Fetch::Fetch(Link& link, Peer& peer, Check check)
    : link_(link),
      peer_(peer),
      check_(check),
      is_atomic_(link.parameters().operation == Operation::kAtomic),
      source_slots_(slots_used(link.theirs().send_slots, link.depths().receive_slots)),
      // An atomic's own receive slots are the counters that the peer may work on.
      landing_slots_(is_atomic_ ? link.depths().send_slots : link.depths().receive_slots) {}

ibv_wr_opcode Fetch::opcode_of(const Parameters& parameters) {
  if (parameters.operation == Operation::kRead) {
    return IBV_WR_RDMA_READ;
  }
  return parameters.atomic_kind == AtomicKind::kFetchAdd ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
}

void Fetch::add(Poster& poster, uint32_t queue_pair, uint64_t sequence) const {
  if (!is_atomic_) {
    poster.add(queue_pair, link_.receive_slot(queue_pair, sequence % landing_slots_),
               link_.remote_send_address(queue_pair, sequence % source_slots_));
    return;
  }
  ibv_send_wr& request = poster.add(queue_pair, link_.send_slot(queue_pair, sequence % landing_slots_), 0);
  request.wr.atomic.remote_addr = link_.remote_receive_address(queue_pair, 0);
  request.wr.atomic.rkey = link_.theirs().remote_key;
  const bool adds = link_.parameters().atomic_kind == AtomicKind::kFetchAdd;
  request.wr.atomic.compare_add = adds ? atomic_value(1) : atomic_value(sequence);
  request.wr.atomic.swap = adds ? 0 : atomic_value(sequence + 1);
}

void Fetch::check(uint32_t queue_pair, uint64_t sequence) const {
  if (is_atomic_) {
    uint64_t found = 0;
    std::memcpy(&found, link_.send_slot(queue_pair, sequence % landing_slots_).data(), sizeof found);
    if (found != atomic_value(sequence)) {
      peer_.fail(fmt::format("atomic {} on queue pair {} found {:#x} where the ones before must have left {:#x}",
                             sequence, queue_pair, found, atomic_value(sequence)));
    }
    return;
  }
  const auto source = static_cast<uint32_t>(sequence % source_slots_);
  const std::span<std::byte> message = link_.receive_slot(queue_pair, sequence % landing_slots_);
  if (const auto wrong = find_damage(message, link_.theirs().seed, source, source, check_)) {
    peer_.fail(fmt::format("READ {} of {} bytes on queue pair {} brought damage from byte {} on", sequence,
                           message.size(), queue_pair, *wrong));
  }
}

Fetcher::Fetcher(Link& link, Peer& peer)
    : link_(link),
      fetch_(link, peer, link.parameters().bandwidth_check),
      poster_(link, peer, Fetch::opcode_of(link.parameters())),
      pace_(link.parameters()),
      lanes_(link.queue_pairs()),
      limit_(link.depths().in_flight * uint64_t{link.queue_pairs()}) {}

std::vector<uint64_t> Fetcher::counts() const {
  std::vector<uint64_t> counts;
  std::ranges::transform(lanes_, std::back_inserter(counts), &Lane::posted);
  return counts;
}

bool Fetcher::advance() {
  bool has_worked = false;
  for (uint32_t index = 0; index < lanes_.size(); ++index) {
    has_worked |= post(index);
  }
  has_worked |= reap();
  change_phase();
  return has_worked;
}

bool Fetcher::post(uint32_t index) {
  Lane& lane = lanes_[index];
  const auto most = static_cast<uint32_t>(
      std::min<uint64_t>(link_.depths().in_flight - (lane.posted - lane.checked), link_.depths().post_list));
  while (poster_.added() < most) {
    const bool is_wanted = phase_ == Phase::kWarming   ? posted_ < limit_
                           : phase_ == Phase::kRunning ? pace_.wants_more(posted_ - timing_.first)
                                                       : false;
    if (!is_wanted) {
      break;
    }
    fetch_.add(poster_, index, lane.posted);
    ++lane.posted;
    ++posted_;
  }
  if (poster_.added() == 0) {
    return false;
  }
  poster_.post(index);
  return true;
}

bool Fetcher::reap() {
  std::array<ibv_wc, 16> completions;
  const int count = link_.poll(link_.send_cq(), completions, "what was asked for");
  for (int i = 0; i < count; ++i) {
    const uint64_t id = completions[static_cast<size_t>(i)].wr_id;
    const auto index = static_cast<uint32_t>(id >> 32U);
    Lane& lane = lanes_[index];
    for (auto covered = static_cast<uint32_t>(id); covered > 0; --covered) {
      fetch_.check(index, lane.checked++);
      ++checked_;
    }
  }
  return count > 0;
}

void Fetcher::change_phase() {
  if (phase_ == Phase::kWarming && posted_ == limit_ && checked_ == posted_) {
    phase_ = Phase::kRunning;
    timing_.first = posted_;
    begin_ns_ = base::now_ns();
    pace_.begin(begin_ns_);
  }
  if (phase_ == Phase::kRunning && !pace_.wants_more(posted_ - timing_.first) && checked_ == posted_) {
    phase_ = Phase::kDone;
    timing_.duration_ns = base::now_ns() - begin_ns_;
  }
}

FetchRound::FetchRound(Link& link, Peer& peer)
    : link_(link),
      peer_(peer),
      fetch_(link, peer, link.parameters().latency_check),
      poster_(link, peer, Fetch::opcode_of(link.parameters())),
      patience_(link, peer, "what was asked for") {}

bool FetchRound::ask(uint64_t number) {
  constexpr uint64_t kOften = 4096;
  if (number % kOften == 0) {
    peer_.tell_working();
  }
  fetch_.add(poster_, 0, number);
  poster_.post(0);
  std::array<ibv_wc, 1> completion;
  while (link_.poll(link_.send_cq(), completion, "what was asked for") == 0) {
    patience_.wait();
  }
  patience_.renew();
  fetch_.check(0, number);
  return true;
}

}  // namespace ringbolt::tools::perf
