#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <queue>
#include <vector>

namespace ringbolt::collective {

/// What happens when in a simulation. Of events of the same time, those that were foreseen first come first. A link has
/// one chunk on it at a time, so few events have to be kept in order; those of arrivals, of which there may be millions
/// under way, need none: each is due the same time after its link was free. Not thread-safe.
class SimulationClock {
 public:
  struct Event {
    double time_us = 0;
    // in which events were foreseen: it decides between those of the same time, so that runs are the same everywhere
    uint64_t order = 0;
    enum class Kind : uint8_t {
      link_free,   ///< index: of the link
      arrival,     ///< of the hop
      chunk_sent,  ///< of the transfer
    } kind = Kind::link_free;
    uint32_t index = 0;
    bool operator>(const Event& other) const {
      return time_us != other.time_us ? time_us > other.time_us : order > other.order;
    }
  };

  explicit SimulationClock(double latency_us) : latency_us_(latency_us) {}

  double now_us() const { return now_us_; }
  bool is_empty() const { return ordered_.empty() && arrivals_.empty(); }

  /// The link has sent its chunk in busy_us; its arrival is foreseen by the same call and begins with arrive_after().
  void add_link(double busy_us, uint32_t link) {
    ordered_.push({now_us_ + busy_us, n_events_, Event::Kind::link_free, link});
    n_events_ += 2;
  }
  /// The chunk of `hop` has left the link whose event `free` is, just now.
  void arrive_after(const Event& free, uint32_t hop) {
    arrivals_.push_back({free.time_us + latency_us_, free.order + 1, Event::Kind::arrival, hop});
  }
  void add_chunk(double time_us, uint32_t transfer) {
    ordered_.push({time_us, n_events_++, Event::Kind::chunk_sent, transfer});
  }

  /// The next event, whose time it then is. There must be one.
  Event next() {
    const bool is_arrival = !arrivals_.empty() && (ordered_.empty() || ordered_.top() > arrivals_.front());
    const Event event = is_arrival ? arrivals_.front() : ordered_.top();
    if (is_arrival) {
      arrivals_.pop_front();
    } else {
      ordered_.pop();
    }
    now_us_ = event.time_us;
    return event;
  }

 private:
  double latency_us_;
  double now_us_ = 0;
  uint64_t n_events_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> ordered_;
  std::deque<Event> arrivals_;
};

}  // namespace ringbolt::collective
