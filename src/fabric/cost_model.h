#pragma once

namespace ringbolt::fabric {

/// What cables and ranks cost a message. All ranks of a group must use the same: chunk sizes and the choice of a schedule
/// follow from it.
struct CostModel {
  double latency_us = 10;         ///< of one hop, whatever the size
  double bytes_per_us = 5000;     ///< of a cable of capacity 1, each way
  double chunk_us = 0;            ///< that a rank is busy with a chunk beside moving its bytes
  double relay_bytes_per_us = 0;  ///< that a rank relays beside its own work; 0: it costs nothing
  double add_bytes_per_us = 0;    ///< that a rank adds up of another's; 0: it costs nothing
  friend bool operator==(const CostModel&, const CostModel&) = default;
};

}  // namespace ringbolt::fabric
