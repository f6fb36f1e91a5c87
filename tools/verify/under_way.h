#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "verify/context.h"
#include "verify/finding.h"
#include "verify/rig.h"

namespace ringbolt::tools::verify {

/// The operations of one queue pair: each completes once, in the order in which they were posted. Pure: knows no verbs.
/// Not thread-safe.
class UnderWay {
 public:
  /// For messages: `name` of the queue pair, and `kind` "send".
  UnderWay(std::string name, const char* kind) : name_(std::move(name)), kind_(kind) {}

  uint64_t posted() const { return posted_; }
  uint64_t completed() const { return completed_; }
  uint64_t count() const { return posted_ - completed_; }

  /// What the completion of the next operation must bear.
  uint32_t next_id() const { return static_cast<uint32_t>(posted_); }
  void note_posted() { ++posted_; }

  /// A completion has come that bears `id`. Returns how many operations are over by it, those that came before their
  /// time included; 0 if it is such a one itself, or none of ours, which `tally` is told. Allocates only if something
  /// is wrong.
  uint64_t complete(uint32_t id, Tally& tally);

 private:
  std::string name_;
  const char* kind_;
  uint64_t posted_ = 0;
  uint64_t completed_ = 0;
  std::set<uint64_t> early_;  // completed before completed_
};

/// Posts operations on the queue pairs of a rig and awaits their completions. Not thread-safe.
/// The rig outlives it. Only one Batch of a rig may exist at a time: it takes all of send_cq().
class Batch {
 public:
  /// `kind`: of operation, for messages.
  explicit Batch(const Rig& rig, const char* kind = "operation");
  /// Of an end that may break off: failed completions are no failure.
  void tolerate_end() { is_tolerant_ = true; }

  bool has_room(uint32_t queue_pair) const { return under_way(queue_pair) < rig_.sends(); }
  uint64_t under_way(uint32_t queue_pair) const { return lanes_[queue_pair].count(); }
  uint64_t posted(uint32_t queue_pair) const { return lanes_[queue_pair].posted(); }
  /// The send slot that the next operation may use, if there is room.
  std::span<std::byte> next_slot(uint32_t queue_pair) const {
    return rig_.send_slot(queue_pair, lanes_[queue_pair].posted() % rig_.sends());
  }
  /// Posts one operation. Returns 0, or what ibv_post_send returned: with something under way that may mean a full
  /// queue.
  [[nodiscard]] int post(uint32_t queue_pair, ibv_send_wr& request, std::span<std::byte> local);
  /// The same, which must be taken. `what`: "an atomic".
  void must_post(uint32_t queue_pair, ibv_send_wr& request, std::span<std::byte> local, const char* what);
  /// Posts a READ into the receive slot, which is prepared for it.
  void read(uint32_t queue_pair, uint64_t slot, uint64_t remote_address, uint64_t length);
  /// Takes completions: calls done(queue pair) for each operation that is over, in the order in which they were posted.
  /// True if there were some. Throws ProbeFailure if one is a failure.
  /// done() may post again. Never blocks.
  template <class Done>
  bool reap(Done&& done) {
    ibv_wc completions[16];
    const size_t count = rig_.poll(rig_.send_cq(), completions);
    for (size_t i = 0; i < count; ++i) {
      const Over over = judge(completions[i]);
      for (uint64_t one = 0; one < over.count; ++one) {
        done(over.queue_pair);
      }
    }
    return count != 0;
  }
  /// Until all that was posted has completed.
  /// Bounded by the watch: throws Stalled when nothing moves.
  template <class Done>
  void await_all(const char* what, Done&& done) {
    while (!is_idle()) {
      rig_.context().watch.turn(reap(done), what);
    }
  }
  bool is_idle() const;
  /// Of each queue pair.
  std::vector<uint64_t> all_posted() const;
  /// What a READ or an atomic of so many bytes has written around them in the receive slot. `what`: "an atomic".
  void judge_outside(uint32_t queue_pair, uint64_t slot, uint64_t bytes, const char* what) const;
  /// "queue pair 0: 512 posted, 500 completed".
  std::string where() const;

 private:
  struct Over {
    uint32_t queue_pair = 0;
    uint64_t count = 0;
  };

  Over judge(const ibv_wc& completion);

  const Rig& rig_;
  const char* kind_;
  bool is_tolerant_ = false;
  std::vector<UnderWay> lanes_;
};

/// What initiators of WRITEs, READs and atomics have in common. Not thread-safe.
/// The rig outlives it.
class Initiator {
 public:
  explicit Initiator(const Rig& rig) : context_(rig.context()), rig_(rig), batch_(rig), pace_(rig.step()) {}

  std::string where() const { return batch_.where(); }

 protected:
  /// An operation brought what it should have.
  void count(uint64_t bytes) {
    ++outcome_.messages;
    outcome_.bytes += bytes;
    context_.watch.count(1, bytes);
  }

  const Context& context_;
  const Rig& rig_;
  Batch batch_;
  Pace pace_;
  Outcome outcome_;
  uint64_t begin_ns_ = base::now_ns();
};

/// The target's part: until the initiator tells "end" as `kind`, take(text) is called with what it tells, and meanwhile
/// other(), which returns whether it found something. The peer is looked at only once that has found nothing more; what
/// comes between the two is for who takes the text: it drains. `what`: the awaited, for messages.
template <class Take, class Other>
void serve(pair::Peer& peer, Watch& watch, const char* kind, const char* what, const Take& take, const Other& other) {
  while (true) {
    if (other()) {
      watch.moved();
      continue;
    }
    const std::optional<std::string> text = peer.look(kind, what);
    if (!text) {
      watch.idle(what);
      continue;
    }
    watch.moved();
    if (*text == "end") {
      return;
    }
    take(*text);
  }
}

/// The initiator's part of a step is an Initiator's, the target's act(rig); the queue pairs stay until both have done
/// theirs. Shapes of READs and atomics have as many receives as sends: where results land.
/// Throws as a Trial's run().
template <class Acting, class Target>
Outcome run_one_sided(const Context& context, RigShape shape, const Target& act) {
  shape.sends = context.initiates() ? context.step.send_depth : 1;
  shape.receives = std::max(shape.receives, shape.sends);
  const Rig rig(context, shape, static_cast<uint16_t>(context.step.epoch));
  Outcome outcome;
  if (context.initiates()) {
    Acting acting(rig);
    const Part part(context.watch, title_of(context.step), [&] { return acting.where(); });
    outcome = acting.run();
  } else {
    outcome = act(rig);
  }
  context.meet("done", "the end of the step");
  return outcome;
}

}  // namespace ringbolt::tools::verify
