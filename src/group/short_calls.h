#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "collective/element.h"
#include "collective/problem.h"
#include "collective/short_execution.h"
#include "group/call.h"

namespace ringbolt::group {

/// What a caller has asked for, as far as a prepared call depends on it: no shares, no names.
/// Two words, put together once a call: that is how it is looked up and compared.
class ShortKey {
 public:
  /// `count`: of elements in a share.
  ShortKey(uint64_t count, collective::Operation operation, collective::Type type = collective::Type::uint8,
           collective::Reduction reduction = collective::Reduction::sum, bool is_reproducible = true, uint32_t root = 0)
      : count_(count),
        rest_(static_cast<uint64_t>(operation) | static_cast<uint64_t>(type) << 8 |
              static_cast<uint64_t>(reduction) << 16 | static_cast<uint64_t>(is_reproducible) << 24 |
              static_cast<uint64_t>(root) << 32) {}

  uint64_t count() const { return count_; }
  collective::Operation operation() const { return static_cast<collective::Operation>(rest_ & 0xff); }
  collective::Type type() const { return static_cast<collective::Type>(rest_ >> 8 & 0xff); }
  collective::Reduction reduction() const { return static_cast<collective::Reduction>(rest_ >> 16 & 0xff); }
  bool is_reproducible() const { return (rest_ >> 24 & 1) != 0; }
  uint32_t root() const { return static_cast<uint32_t>(rest_ >> 32); }
  /// Every bit of both words decides. Knuth 1998, 6.4: the golden ratio spreads what differs in few bits.
  uint64_t hash() const { return (count_ ^ rest_ * 0xff51afd7ed558ccd) * 0x9e3779b97f4a7c15; }
  friend bool operator==(const ShortKey&, const ShortKey&) = default;

 private:
  uint64_t count_;
  uint64_t rest_;
};
static_assert(sizeof(collective::Operation) == 1 && sizeof(collective::Type) == 1 &&
              sizeof(collective::Reduction) == 1);

/// A short collective that has been called before, ready to be called again: its call, its schedule and what that waits
/// for are made. While it runs this way the communicator does not know it among its calls; as soon as anything is out
/// of the ordinary it is handed over and is one of them (Communicator::hand_over_short()).
/// Owned by ShortCalls. From begin_short() to end_short() its caller has a pointer to it, and it stays (`is_in_use`).
/// Under the mesh's lock.
struct ShortCall {
  ShortCall(const ShortKey& asked, std::shared_ptr<Call> made,
            std::shared_ptr<const collective::CompiledProgram> program)
      : key(asked), call(std::move(made)), execution(std::move(program)) {}

  /// Whether it is over, one way or the other.
  /// Asked by the one who waits, with each poll.
  bool is_over() const { return is_handed_over ? call->is_done() : execution.is_done(); }

  ShortKey key;
  std::shared_ptr<Call> call;
  collective::ShortExecution execution;
  collective::Operands operands = {};  // of the latest one
  bool has_input = false;              ///< there has to be one, as when it was made
  bool has_output = false;
  bool is_in_use = false;       ///< somebody waits for it
  bool is_handed_over = false;  ///< likewise
};

/// The prepared calls of a communicator: each has a place that its key decides, which it loses to a later one. Not
/// thread-safe.
class ShortCalls {
 public:
  /// Longer chunks take so long that it does not matter how they are begun.
  static constexpr uint32_t kMostBytes = 8192;

  /// Null if there is none.
  ShortCall* find(const ShortKey& key) {
    ShortCall* const found = calls_[place_of(key)].get();
    return found != nullptr && found->key == key ? found : nullptr;
  }
  /// Where one is to be made for that; null if the place is in use, or taken by it already.
  /// What is there is destroyed when another one is put there. Good until then.
  std::unique_ptr<ShortCall>* place_for(const ShortKey& key) {
    std::unique_ptr<ShortCall>& place = calls_[place_of(key)];
    return place == nullptr || (!place->is_in_use && place->key != key) ? &place : nullptr;
  }

 private:
  static constexpr unsigned kPlacesLog = 6;
  static size_t place_of(const ShortKey& key) { return static_cast<size_t>(key.hash() >> (64 - kPlacesLog)); }
  std::array<std::unique_ptr<ShortCall>, size_t{1} << kPlacesLog> calls_;
};

}  // namespace ringbolt::group
