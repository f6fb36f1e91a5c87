#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/adaptive_mutex.h"
#include "base/unique_fd.h"
#include "fault/shelf.h"
#include "fault/stream.h"
#include "link/udp_buffer.h"
#include "link/udp_message.h"
#include "wire/flow.h"

namespace ringbolt::link {

/// A port as faults know it: the frames of one network interface.
struct UdpFaultPort {
  uint32_t interface_index = 0;
  fault::Place place;
};

/// A frame on its way out, BTH to pad, with what is to be done to it.
struct UdpDeparture {
  UdpPath path;
  std::vector<std::byte> bytes;
  fault::Verdict harm;  ///< its bits and its cut
};

/// A frame that came in, BTH to ICRC.
struct UdpArrival {
  wire::Flow flow;
  uint32_t interface_index = 0;
  uint16_t segment = 0;
  std::span<std::byte> packet;  ///< in `buffer`
  UdpBufferRef buffer;
};

/// What a plan of faults does to the frames of one endpoint: asks the streams of their ports, and holds back what is to
/// come later. Thread-safe.
/// Owned by the endpoint. Its lock is a leaf, taken for each frame while there are faults.
class UdpFaults {
 public:
  /// Throws base::Error.
  UdpFaults();

  /// From now on these faults, at these ports. What is held back is let go. Rules that stay go on counting.
  void set(const fault::Plan& plan, std::span<const UdpFaultPort> ports, uint64_t now_ns);
  /// Without rules and with nothing held back there is nothing to ask.
  bool is_on() const { return is_on_.load(std::memory_order_acquire); }

  /// A frame wants to leave. True: as it is. False: instead of it, `departures` (one and its copies, or none) do.
  bool send(const UdpPath& path, std::span<const std::byte> packet, uint64_t now_ns,
            std::vector<UdpDeparture>& departures);
  /// The next frame whose time to leave has come.
  std::optional<UdpDeparture> take_departure(uint64_t now_ns);
  /// There was no room for it: it is the next one again, or nearly.
  void give_back(UdpDeparture departure);
  bool has_departures(uint64_t now_ns) const { return next_departure_ns_.load(std::memory_order_relaxed) <= now_ns; }

  /// A frame came in: appends to `arrivals` what gets in instead, in order; with those whose time has come.
  void arrive(UdpArrival&& arrival, uint64_t now_ns, std::vector<UdpArrival>& arrivals);
  /// Appends the frames whose time to get in has come.
  void take_arrivals(uint64_t now_ns, std::vector<UdpArrival>& arrivals);

  /// Readable when it is time to take departures or arrivals.
  int descriptor() const { return timer_.get(); }

  struct Seen {
    fault::Place place;
    fault::Direction direction;
    fault::Tally tally;
    uint64_t overflowed;  ///< more was held back than there is room for: lost as well
  };
  /// What happened so far, where faults have been in effect.
  std::vector<Seen> seen() const;

  /// In a forked child: closes the descriptor.
  void abandon_after_fork() { timer_.reset(); }

 private:
  template <class Frame>
  struct Way {
    fault::Stream stream;
    fault::Shelf<Frame> shelf{};
    uint64_t overflowed = 0;
  };
  struct Port {
    uint32_t interface_index;
    Way<UdpDeparture> out;
    Way<UdpArrival> in;
    bool is_idle() const {
      return !out.stream.has_rules() && !in.stream.has_rules() && out.shelf.is_empty() && in.shelf.is_empty();
    }
  };
  Port* find(uint32_t interface_index) RINGBOLT_REQUIRES(lock_);
  template <class Frame>
  static void hold(Way<Frame>& way, Frame frame, const fault::Verdict& verdict, uint64_t now_ns);
  /// After each change of a shelf.
  void set_timer() RINGBOLT_REQUIRES(lock_);

  base::UniqueFd timer_;
  std::atomic<bool> is_on_{false};
  // CLOCK_MONOTONIC. Relaxed: the timer tells of it anyway.
  std::atomic<uint64_t> next_departure_ns_{UINT64_MAX};

  mutable base::AdaptiveMutex lock_;
  std::vector<Port> ports_ RINGBOLT_GUARDED_BY(lock_);
  uint64_t timer_ns_ RINGBOLT_GUARDED_BY(lock_) = UINT64_MAX;
};

}  // namespace ringbolt::link
