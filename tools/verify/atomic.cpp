#include <algorithm>
#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "base/clock.h"
#include "verify/context.h"
#include "verify/ledger.h"
#include "verify/under_way.h"

namespace ringbolt::tools::verify {
namespace {

// Cells of the target, each in a line of its own. The shared ones are in the area of the first queue pair.
constexpr size_t kSumOffset = Rig::kGuardBytes;
constexpr size_t kExchangeOffset = 2 * Rig::kGuardBytes;
constexpr size_t kOwnOffset = 3 * Rig::kGuardBytes;
constexpr uint64_t kAreaBytes = 4 * Rig::kGuardBytes;
/// Operations of each queue pair in a round, after which the target looks at its memory.
// A multiple of the three kinds of operation.
constexpr uint64_t kRound = 3072;

uint64_t addend_of(uint32_t queue_pair) { return 2 * uint64_t{queue_pair} + 1; }

/// Adds and swaps on all queue pairs at once, and keeps the accounts. Not thread-safe.
class Calculator : public Initiator {
 public:
  explicit Calculator(const Rig& rig)
      : Initiator(rig), ledger_(rig.queue_pairs(), rig.context().tally), lanes_(rig.queue_pairs()) {}

  Outcome run() {
    context_.peer.await("cells", "its memory");  // it has set them to 0
    begin_ns_ = base::now_ns();
    bool wants_more = true;
    while (wants_more) {
      ledger_.begin(kRound * rig_.queue_pairs());
      wants_more = round();
      // In the order in which compare_cells() takes them.
      std::vector<uint64_t> values{ledger_.shared_sum(), ledger_.end()};
      for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
        values.push_back(ledger_.own_sum(index));
      }
      context_.peer.tell("values", values);
      context_.peer.await("looked", "its look at the cells");
      outcome_.duration_ns = base::now_ns() - begin_ns_;
    }
    context_.peer.tell("values", "end");
    return outcome_;
  }

 private:
  struct Operation {
    int kind;  // 0: add to the shared cell, 1: add to the own one, 2: exchange
    uint64_t compared;
    uint64_t swapped;
  };
  struct Lane {
    std::vector<Operation> under_way;  // by slot
    uint64_t done = 0;
    uint64_t known = 0;  // of the exchanged cell
  };

  /// False when the whole is over.
  bool round() {
    bool wants_more = true;
    for (uint64_t turn = 0; turn < kRound && wants_more; ++turn) {
      for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
        wants_more = pace_.wants_more(batch_.posted(index)) && wants_more;
        if (!wants_more) {
          break;
        }
        post(index);
      }
    }
    batch_.await_all("completions of atomics", [&](uint32_t index) { take(index); });
    return wants_more;
  }

  void post(uint32_t index) {
    Lane& lane = lanes_[index];
    lane.under_way.resize(rig_.sends());
    while (!batch_.has_room(index)) {
      context_.watch.turn(batch_.reap([&](uint32_t one) { take(one); }), "completions of atomics");
    }
    const uint64_t number = batch_.posted(index);
    const uint64_t slot = number % rig_.sends();
    Operation& one = lane.under_way[slot];
    one = {static_cast<int>(number % 3), lane.known, uint64_t{index} << 48U | (number + 1)};
    ibv_send_wr request{};
    request.opcode = one.kind == 2 ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    request.wr.atomic.rkey = rig_.remote_key();
    request.wr.atomic.remote_addr = one.kind == 0   ? rig_.remote_area(0) + kSumOffset
                                    : one.kind == 1 ? rig_.remote_area(index) + kOwnOffset
                                                    : rig_.remote_area(0) + kExchangeOffset;
    request.wr.atomic.compare_add = one.kind == 0 ? 1 : one.kind == 1 ? addend_of(index) : one.compared;
    request.wr.atomic.swap = one.swapped;
    rig_.prepare(index, slot);
    batch_.must_post(index, request, rig_.receive_slot(index, slot).first(sizeof(uint64_t)), "an atomic");
  }

  void take(uint32_t index) {
    Lane& lane = lanes_[index];
    const uint64_t slot = lane.done++ % rig_.sends();
    const Operation& one = lane.under_way[slot];
    std::atomic_thread_fence(std::memory_order_acquire);
    uint64_t old = 0;
    std::memcpy(&old, rig_.receive_slot(index, slot).data(), sizeof old);
    batch_.judge_outside(index, slot, sizeof old, "an atomic");
    const uint64_t errors = context_.tally.total();
    if (one.kind == 0) {
      ledger_.shared_addition(index, old);
    } else if (one.kind == 1) {
      ledger_.own_addition(index, addend_of(index), old);
    } else {
      lane.known = ledger_.exchange(index, one.compared, one.swapped, old) ? one.swapped : old;
    }
    if (context_.tally.total() == errors) {
      count(sizeof old);
    }
  }

  Ledger ledger_;
  std::vector<Lane> lanes_;
};

uint64_t cell(const Rig& rig, uint32_t queue_pair, size_t offset) {
  auto* const at = reinterpret_cast<uint64_t*>(rig.area(queue_pair).data() + offset);
  // Pairs with the device's own atomics: never a value in halves.
  return std::atomic_ref<uint64_t>(*at).load(std::memory_order_acquire);
}

void compare_cells(const Rig& rig, const std::vector<uint64_t>& values) {
  const auto compare = [&](const std::string& what, uint64_t expected, uint64_t found) {
    if (expected != found) {
      rig.context().tally.note(Kind::kAccount, "{} in the target's memory: expected {:#x}, found {:#x}", what, expected,
                               found);
    }
  };
  compare("the sum of all queue pairs' additions", values[0], cell(rig, 0, kSumOffset));
  compare("the cell of compare-and-swap", values[1], cell(rig, 0, kExchangeOffset));
  for (uint32_t index = 0; index < rig.queue_pairs(); ++index) {
    compare(fmt::format("the cell of queue pair {}", index), values[2 + index], cell(rig, index, kOwnOffset));
  }
}

Outcome be_counted_on(const Rig& rig) {
  const Context& context = rig.context();
  const Part part(context.watch, title_of(context.step),
                  [&] { return fmt::format("the sum is {}", cell(rig, 0, kSumOffset)); });
  for (uint32_t index = 0; index < rig.queue_pairs(); ++index) {
    std::memset(rig.area(index).data(), 0, rig.area(index).size());
  }
  std::atomic_thread_fence(std::memory_order_release);
  context.peer.tell("cells", "");
  const auto look = [&](const std::string& values) {
    compare_cells(rig, context.peer.numbers_in(values, 2 + size_t{rig.queue_pairs()}));
    context.peer.tell("looked", "");
  };
  serve(context.peer, context.watch, "values", "the end of a round of atomics", look, [&] {
    rig.prod();
    return false;
  });
  return {};
}

}  // namespace

Outcome run_atomic(const Context& context) {
  RigShape shape;
  shape.area_bytes = kAreaBytes;
  shape.access = IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  return run_one_sided<Calculator>(context, shape, be_counted_on);
}

}  // namespace ringbolt::tools::verify
