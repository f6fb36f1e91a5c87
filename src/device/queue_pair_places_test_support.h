#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "device/queue_pair.h"

namespace ringbolt::device {

/// Room for so many queue pairs, and none in it: for tests of what knows queue pairs by their addresses and never looks
/// into them. Nobody may read or call what at() gives. Not thread-safe.
template <size_t kCount>
class QueuePairPlaces {
 public:
  QueuePair& at(size_t number) { return *reinterpret_cast<QueuePair*>(bytes_.at(number).data()); }
  /// kCount: it is none of them.
  size_t number_of(const QueuePair& qp) const {
    const auto found = std::ranges::find_if(bytes_, [&](const Bytes& one) {
      return static_cast<const void*>(one.data()) == static_cast<const void*>(&qp);
    });
    return static_cast<size_t>(found - bytes_.begin());
  }

 private:
  using Bytes = std::array<std::byte, sizeof(QueuePair)>;
  alignas(QueuePair) std::array<Bytes, kCount> bytes_;  // sizeof is a multiple of alignof, so each is aligned
};

}  // namespace ringbolt::device
