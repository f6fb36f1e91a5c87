// What a simulation begins with: links, and the steps of all ranks with the transfers between them.
#include <algorithm>
#include <bit>

#include "collective/simulation.h"

namespace ringbolt::collective {
namespace {

/// 22, 21 and 21 bits: two million ranks, and transfers of a pair.
uint64_t key_of(uint32_t from, uint32_t to, uint32_t transfer) {
  return (static_cast<uint64_t>(from) << 42) | (static_cast<uint64_t>(to) << 21) | transfer;
}

}  // namespace

/// Numbers of transfers by who sends to whom: a table with open places, since there may be a million.
class Simulation::TransferNumbers {
 public:
  explicit TransferNumbers(size_t most) : places_(std::bit_ceil(2 * most + 2)) {}

  /// The number of that transfer; `next`, if it is new.
  uint32_t number(uint64_t key, uint32_t next) {
    constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;
    const size_t mask = places_.size() - 1;
    for (size_t at = (key * kSpread) >> 32 & mask;; at = (at + 1) & mask) {
      Place& place = places_[at];
      if (place.number == kNone) {
        place = {key, next};
      }
      if (place.key == key) {
        return place.number;
      }
    }
  }

 private:
  struct Place {
    uint64_t key = 0;
    uint32_t number = kNone;
  };
  std::vector<Place> places_;
};

Simulation::Simulation(const Schedule& schedule, const Problem& problem, const Topology& topology)
    : schedule_(schedule),
      topology_(topology),
      model_(topology.model()),
      contributions_(problem),
      rank_free_us_(topology.n_ranks()),
      clock_(topology.model().latency_us) {
  add_links();
  add_steps();
}

void Simulation::add_links() {
  links_.resize(topology_.n_links());
  for (uint32_t link = 0; link < links_.size(); ++link) {
    links_[link].bytes_per_us = topology_.rate_of_link(link);
  }
}

void Simulation::add_steps() {
  size_t n_steps = 0;
  size_t n_ends = 0;
  for (const Program& program : schedule_.programs) {
    n_steps += program.steps.size();
    for (const Step& step : program.steps) {
      n_ends += step.sources.size() + step.targets.size();
    }
  }
  steps_.reserve(n_steps);
  transfers_of_steps_.reserve(n_ends);
  TransferNumbers numbers(n_ends);
  for (uint32_t rank = 0; rank < schedule_.programs.size(); ++rank) {
    const auto first_step = static_cast<uint32_t>(steps_.size());
    for (const Step& step : schedule_.programs[rank].steps) {
      add_step(step, rank, first_step, numbers);
    }
    first_steps_.push_back(first_step);
  }
}

void Simulation::add_step(const Step& step, uint32_t rank, uint32_t first_step, TransferNumbers& numbers) {
  const auto transfer_of = [&](uint32_t from, uint32_t to, uint32_t transfer) {
    const uint32_t number = numbers.number(key_of(from, to, transfer), static_cast<uint32_t>(transfers_.size()));
    if (number == transfers_.size()) {
      transfers_.emplace_back();
    }
    return number;
  };
  const auto number = static_cast<uint32_t>(steps_.size());
  StepState& state = steps_.emplace_back();
  state.step = &step;
  state.rank = rank;
  state.n_chunks = std::max<uint32_t>(1, static_cast<uint32_t>((step.bytes + step.chunk_bytes - 1) / step.chunk_bytes));
  state.first_transfer = static_cast<uint32_t>(transfers_of_steps_.size());
  for (const Source& source : step.sources) {
    if (source.kind == Source::Kind::transfer) {
      transfers_of_steps_.push_back(transfer_of(source.peer, rank, source.transfer));
      transfers_[transfers_of_steps_.back()].receiver = number;
    } else if (source.after != kNoStep) {
      StepState& other = steps_[first_step + source.after];
      waiters_.push_back({number, other.first_waiter});
      other.first_waiter = static_cast<uint32_t>(waiters_.size() - 1);
    }
  }
  for (const Target& target : step.targets) {
    if (target.kind == Target::Kind::transfer) {
      transfers_of_steps_.push_back(transfer_of(rank, target.peer, target.transfer));
      transfers_[transfers_of_steps_.back()].sender = number;
      add_hops(step, transfers_of_steps_.back(), rank, target);
    }
  }
}

void Simulation::add_hops(const Step& step, uint32_t transfer, uint32_t rank, const Target& target) {
  transfers_[transfer].first_hop = static_cast<uint32_t>(hops_.size());
  uint32_t node = rank;
  for (size_t hop = 0; hop <= target.via.size(); ++hop) {
    const uint32_t next = hop < target.via.size() ? target.via[hop] : target.peer;
    hops_.push_back({step.bytes, step.chunk_bytes, transfer, topology_.link(node, next),
                     static_cast<uint32_t>(target.via.size() - hop), 0, 0});
    node = next;
  }
}

}  // namespace ringbolt::collective
