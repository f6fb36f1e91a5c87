#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "collective/executor.h"

namespace ringbolt::collective::test {

/// Keeps what is sent until the test delivers it, in any order, and has few slots.
class PlayedP2p : public PointToPoint {
 public:
  struct Message {
    uint32_t from = 0;
    uint32_t to = 0;
    ChunkTag tag;
    bool is_word_of_use = false;
    uint32_t slot = 0;  ///< in use until it is delivered
    std::vector<std::byte> bytes;
  };

  PlayedP2p(uint32_t rank, size_t n_slots, std::vector<Message>& on_the_way)
      : rank_(rank), on_the_way_(on_the_way), slots_(n_slots), is_free_(n_slots, true) {}

  std::optional<Slot> take_slot(uint32_t length_bytes) override {
    for (uint32_t i = 0; i < slots_.size(); ++i) {
      if (is_free_[i]) {
        is_free_[i] = false;
        slots_[i].assign(length_bytes, std::byte{0xee});
        return Slot{slots_[i].data(), i};
      }
    }
    return std::nullopt;
  }
  void fill(Slot slot, const std::byte* from, uint32_t length_bytes) override {
    std::copy_n(from, length_bytes, slot.bytes);
  }
  void send(Slot slot, uint32_t length_bytes, uint32_t peer, std::span<const uint32_t>, const ChunkTag& tag) override {
    slots_[slot.id].resize(length_bytes);
    on_the_way_.push_back({rank_, peer, tag, false, slot.id, slots_[slot.id]});
  }
  void cancel(Slot slot) override { is_free_[slot.id] = true; }
  void tell_used(uint32_t peer, const ChunkTag& tag) override { on_the_way_.push_back({rank_, peer, tag, true, 0, {}}); }

  /// What has come, and the number by which it is given back.
  struct Kept {
    uint64_t id = 0;
    std::span<const std::byte> bytes;
  };
  Kept keep(std::vector<std::byte> bytes) {
    kept_.push_back(std::make_unique<std::vector<std::byte>>(std::move(bytes)));
    return {kept_.size() - 1, *kept_.back()};
  }
  Parcel parcel(std::vector<std::byte> bytes) {
    const Kept kept = keep(std::move(bytes));
    return {this, kept.id, kept.bytes};
  }
  /// Parcels that nobody has given back.
  size_t n_kept() const {
    size_t n = 0;
    for (const auto& bytes : kept_) {
      n += bytes != nullptr ? 1U : 0U;
    }
    return n;
  }

 protected:
  void release(uint64_t parcel) override {
    // What is read after it was given back is wrong.
    std::fill(kept_[parcel]->begin(), kept_[parcel]->end(), std::byte{0xdd});
    kept_[parcel].reset();
  }
  Place settle(uint64_t parcel, std::span<const std::byte> bytes) override {
    kept_.push_back(std::make_unique<std::vector<std::byte>>(bytes.begin(), bytes.end()));
    release(parcel);
    return {kept_.size() - 1, *kept_.back()};
  }

 private:
  uint32_t rank_;
  std::vector<Message>& on_the_way_;
  std::vector<std::vector<std::byte>> slots_;
  std::vector<bool> is_free_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> kept_;
};

/// All ranks of one call in one thread. What they send arrives in an order that the seed decides.
class PlayedRanks {
 public:
  PlayedRanks(const Schedule& schedule, uint32_t seed, size_t n_slots = 3) : random_(seed) {
    for (uint32_t rank = 0; rank < schedule.programs.size(); ++rank) {
      p2p_.push_back(std::make_unique<PlayedP2p>(rank, n_slots, on_the_way_));
      executions_.emplace_back(std::make_shared<const CompiledProgram>(schedule.programs[rank]));
    }
  }

  /// Runs one call to its end; false if nothing can go on before that, or a chunk is refused.
  bool run(uint32_t call, const std::vector<Operands>& operands) {
    for (uint32_t rank = 0; rank < executions_.size(); ++rank) {
      executions_[rank].start(call, operands[rank], *p2p_[rank]);
      go_on(executions_[rank]);
    }
    while (!on_the_way_.empty()) {
      std::swap(on_the_way_[random_() % on_the_way_.size()], on_the_way_.back());
      PlayedP2p::Message message = std::move(on_the_way_.back());
      on_the_way_.pop_back();
      Execution& execution = executions_[message.to];
      const Taken taken = message.is_word_of_use ? execution.hear_used(message.from, message.tag)
                                                 : execution.arrive(message.from, message.tag,
                                                                    p2p_[message.to]->parcel(std::move(message.bytes)));
      if (taken != Taken::ok) {
        return false;
      }
      go_on(execution);
      if (!message.is_word_of_use) {
        p2p_[message.from]->cancel({nullptr, message.slot});
        go_on(executions_[message.from]);
      }
    }
    for (size_t rank = 0; rank < executions_.size(); ++rank) {
      if (!executions_[rank].is_done() || p2p_[rank]->n_kept() != 0) {
        return false;
      }
    }
    return true;
  }

  Execution& execution(uint32_t rank) { return executions_[rank]; }
  PlayedP2p& p2p(uint32_t rank) { return *p2p_[rank]; }
  std::vector<PlayedP2p::Message>& on_the_way() { return on_the_way_; }

 private:
  static void go_on(Execution& execution) {
    execution.advance();
    while (execution.wants_turn()) {
      execution.advance();
    }
  }

  std::mt19937 random_;
  std::vector<PlayedP2p::Message> on_the_way_;
  std::vector<std::unique_ptr<PlayedP2p>> p2p_;
  std::vector<Execution> executions_;
};

}  // namespace ringbolt::collective::test
