#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace ringbolt::engine {

/// What waits for the cables to one neighbour. Ranks whose chunks wait here get equal shares in bytes, a relay's own
/// traffic counting as one of them: the next is of the rank that has had least (Goyal, Vin and Cheng 1996, start-time
/// fair queueing). What has no credit is skipped: a chunk never waits behind one of another buffer class. Pure. Not
/// thread-safe.
template <class Entry>
/// `Entry` is a value. It may allocate with add(); serve() and clear() must not be called from within one another.
class OutputQueue {
 public:
  bool is_empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  /// Behind all others of the same source, class and size. `bytes`: what it takes of the cables.
  void add(uint32_t source, uint32_t buffer_class, bool is_large, uint32_t bytes, Entry entry) {
    ++size_;
    Source& of = source_of(source);
    if (of.n_waiting++ == 0) {
      of.had_bytes = std::max(of.had_bytes, now_bytes_);  // who has been away does not catch up
    }
    flow_of(of, buffer_class, is_large).entries.push_back({bytes, std::move(entry)});
  }

  /// Offers what is first to `try_send(entry, buffer_class, is_large) -> bool`, which takes it or refuses; ends when
  /// all are refused. What is refused once is not offered again meanwhile.
  template <class TrySend>
  void serve(TrySend&& try_send) {
    for (Source& source : sources_) {
      source.is_open = source.n_waiting > 0;
    }
    while (Source* const next = least_served()) {
      const uint64_t had_bytes = next->had_bytes;
      if (send_one(*next, try_send)) {
        now_bytes_ = std::max(now_bytes_, had_bytes);
        next->is_open = next->n_waiting > 0;
      } else {
        next->is_open = false;
      }
    }
  }

  /// Takes all out and passes each to `drop(entry)`.
  template <class Drop>
  void clear(Drop&& drop) {
    for (Source& source : sources_) {
      for (Flow& flow : source.flows) {
        for (Waiting& waiting : flow.entries) {
          drop(waiting.entry);
        }
      }
    }
    sources_.clear();
    size_ = 0;
    now_bytes_ = 0;
  }

 private:
  struct Waiting {
    uint32_t bytes = 0;
    Entry entry;
  };
  struct Flow {
    uint32_t buffer_class = 0;
    bool is_large = false;
    std::deque<Waiting> entries = {};
  };
  struct Source {
    uint32_t rank = 0;
    // Of the cables, since it began or since who was away came back.
    uint64_t had_bytes = 0;
    size_t n_waiting = 0;
    bool is_open = false;  // in serve(): not refused yet
    size_t next_flow = 0;
    std::vector<Flow> flows = {};
  };

  Source& source_of(uint32_t rank) {
    for (Source& source : sources_) {
      if (source.rank == rank) {
        return source;
      }
    }
    return sources_.emplace_back(Source{rank});
  }
  static Flow& flow_of(Source& source, uint32_t buffer_class, bool is_large) {
    for (Flow& flow : source.flows) {
      if (flow.buffer_class == buffer_class && flow.is_large == is_large) {
        return flow;
      }
    }
    return source.flows.emplace_back(Flow{buffer_class, is_large});
  }
  Source* least_served() {
    Source* least = nullptr;
    for (Source& source : sources_) {
      if (source.is_open && (least == nullptr || source.had_bytes < least->had_bytes)) {
        least = &source;
      }
    }
    return least;
  }
  /// The first that is taken of a source's flows, which take turns.
  template <class TrySend>
  bool send_one(Source& source, TrySend&& try_send) {
    for (size_t i = 0; i < source.flows.size(); ++i) {
      const size_t at = (source.next_flow + i) % source.flows.size();
      Flow& flow = source.flows[at];
      if (flow.entries.empty() || !try_send(flow.entries.front().entry, flow.buffer_class, flow.is_large)) {
        continue;
      }
      source.had_bytes += flow.entries.front().bytes;
      flow.entries.pop_front();
      source.next_flow = at + 1;
      --source.n_waiting;
      --size_;
      return true;
    }
    return false;
  }

  std::vector<Source> sources_;
  uint64_t now_bytes_ = 0;  // what the one that was served last had had before
  size_t size_ = 0;
};

}  // namespace ringbolt::engine
