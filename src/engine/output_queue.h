#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace ringbolt::engine {

/// What waits for the cables to one neighbour, served in turn by source rank, so that a relay's own traffic and that of
/// each rank behind it get equal shares (Shreedhar and Varghese 1995; all chunks count alike). What has no credit is
/// skipped: a chunk never waits behind one of another buffer class. Pure. Not thread-safe.
template <class Entry>
class OutputQueue {
 public:
  bool is_empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  /// Behind all others of the same source, class and size.
  void add(uint32_t source, uint32_t buffer_class, bool is_large, Entry entry) {
    ++size_;
    for (Flow& flow : flows_) {
      if (flow.source == source && flow.buffer_class == buffer_class && flow.is_large == is_large) {
        flow.entries.push_back(std::move(entry));
        return;
      }
    }
    flows_.push_back({source, buffer_class, is_large, {}});
    flows_.back().entries.push_back(std::move(entry));
  }

  /// Offers the first entry of each flow in turn to `try_send(entry, buffer_class, is_large) -> bool`, which takes it
  /// or refuses; ends when all refuse.
  template <class TrySend>
  void serve(TrySend&& try_send) {
    size_t n_refused = 0;
    while (size_ > 0 && n_refused < flows_.size()) {
      next_ = (next_ + 1) % flows_.size();
      Flow& flow = flows_[next_];
      if (flow.entries.empty() || !try_send(flow.entries.front(), flow.buffer_class, flow.is_large)) {
        ++n_refused;
        continue;
      }
      flow.entries.pop_front();
      --size_;
      n_refused = 0;
    }
  }

  /// Takes all out and passes each to `drop(entry)`.
  template <class Drop>
  void clear(Drop&& drop) {
    for (Flow& flow : flows_) {
      for (Entry& entry : flow.entries) {
        drop(entry);
      }
    }
    flows_.clear();
    size_ = 0;
    next_ = 0;
  }

 private:
  struct Flow {
    uint32_t source = 0;
    uint32_t buffer_class = 0;
    bool is_large = false;
    std::deque<Entry> entries;
  };
  std::vector<Flow> flows_;
  size_t next_ = 0;
  size_t size_ = 0;
};

}  // namespace ringbolt::engine
