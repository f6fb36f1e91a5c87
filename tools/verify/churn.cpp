#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "failure.h"
#include "stop.h"
#include "verify/context.h"
#include "verify/rig.h"
#include "verify/stamp.h"
#include "verify/stream.h"
#include "verify/under_way.h"

namespace ringbolt::tools::verify {
namespace {

/// Who destroys its queue pairs first, and whether it waits until nothing is under way. In turns.
struct Ending {
  bool is_client_first;
  bool is_abrupt;
};

Ending ending_of(uint64_t round) { return {round % 2 == 0, round % 4 >= 2}; }

/// One round at one end: both ends send a few messages on every queue pair, and then all of it goes away.
class Round {
 public:
  Round(const Rig& rig, Ending ending)
      : context_(rig.context()), rig_(rig), ending_(ending), receiver_(rig, false), sends_(rig, "send") {
    if (ending.is_abrupt) {
      receiver_.tolerate_end();
      sends_.tolerate_end();
    }
  }

  bool is_first() const { return context_.is_client == ending_.is_client_first; }
  std::string where() const { return fmt::format("{} sent; {}", sent_, receiver_.where()); }
  const StreamReceiver& receiver() const { return receiver_; }

  void run() {
    send_all();
    if (!ending_.is_abrupt) {
      turn_until([&] { return receiver_.has_all(context_.step.send_depth) && sends_.is_idle(); },
                 "messages and completions of a round");
      context_.peer.tell("had", "");
      turn_until([&] { return context_.peer.look("had", "its round").has_value(); }, "the other end to have all");
      receiver_.finish_early();
    } else if (!is_first()) {
      turn_until([&] { return context_.peer.look("gone", "its round").has_value(); }, "the other end to destroy");
      has_heard_gone_ = true;
      const uint64_t begin = base::now_ns();
      // Time for what had left the other end before it destroyed its queue pairs.
      constexpr uint64_t kTailNs = 1'000'000;
      while (base::now_ns() - begin < kTailNs) {
        (void)receiver_.advance();
      }
      receiver_.finish_early();
    }
  }

  bool has_heard_gone() const { return has_heard_gone_; }

 private:
  void send_all() {
    for (uint32_t number = 0; number < context_.step.send_depth; ++number) {
      for (uint32_t index = 0; index < rig_.queue_pairs(); ++index) {
        const uint32_t length = size_of(context_.step, index, number);
        const std::span<std::byte> message = rig_.send_slot(index, number).first(length);
        write_message(message, rig_.seed(), rig_.stamp(index, number, length));
        ibv_send_wr request{};
        request.opcode = IBV_WR_SEND;
        if (const int error = sends_.post(index, request, message)) {
          if (ending_.is_abrupt && !is_first()) {
            continue;  // the other end may be gone already
          }
          context_.peer.fail("{}: ibv_post_send of message {} of {} bytes: {}", rig_.name(index), number, length,
                             base::reason_of(error));
        }
        ++sent_;
      }
    }
  }

  template <class Done>
  void turn_until(Done&& is_done, const char* what) {
    while (!is_done()) {
      const bool has_sent = sends_.reap([](uint32_t) {});
      context_.watch.turn(receiver_.advance() || has_sent, what);
    }
  }

  const Context& context_;
  const Rig& rig_;
  Ending ending_;
  StreamReceiver receiver_;
  Batch sends_;
  uint64_t sent_ = 0;
  bool has_heard_gone_ = false;
};

std::unique_ptr<Rig> make_rig(const Context& context, uint64_t round) {
  RigShape shape;
  shape.sends = context.step.send_depth;
  shape.receives = context.step.send_depth + context.step.send_depth / 4 + 1;
  try {
    return std::make_unique<Rig>(context, shape, static_cast<uint16_t>(context.step.epoch + round));
  } catch (const ProbeFailure& failure) {
    // In the first round it is no leak: nothing was destroyed yet.
    if (failure.is_echo() || round == 0) {
      throw;
    }
    const std::string text = fmt::format(
        "round {}: {}, after {} queue pairs were made and destroyed, {} at a time, on a device that has {}: its "
        "objects don't come back",
        round, failure.what(), round * context.step.queue_pairs, context.step.queue_pairs,
        context.device.limits().max_qp);
    context.tally.add(Kind::kLeak, text);
    throw Found(text);
  }
}

void destroy(const Context& context, Rig& rig, uint64_t round) {
  // Before the other end hears "gone"; ~Rig() has nothing left to do.
  for (const std::string& refused : rig.take_down(round / 4 % 2 == 1)) {
    context.tally.note(Kind::kLeak, "round {}: {}", round, refused);
  }
}

void run_round(const Context& context, uint64_t number, Outcome& outcome) {
  const uint64_t begin = base::now_ns();
  const std::unique_ptr<Rig> rig = make_rig(context, number);
  Round round(*rig, ending_of(number));
  const Part part(context.watch, title_of(context.step),
                  [&] { return fmt::format("round {}: {}", number, round.where()); });
  round.run();
  if (!round.is_first() && !round.has_heard_gone()) {
    context.peer.await("gone", "the other end to destroy its queue pairs");
  }
  destroy(context, *rig, number);
  context.peer.tell("gone", "");
  if (round.is_first()) {
    context.peer.await("gone", "the other end to destroy its queue pairs");
  }
  context.watch.moved();
  round.receiver().add_to(outcome);
  outcome.slowest_ns = std::max(outcome.slowest_ns, base::now_ns() - begin);
  ++outcome.rounds;
}

}  // namespace

Outcome run_churn(const Context& context) {
  Outcome outcome;
  Pace pace(context.step);
  const uint64_t begin = base::now_ns();
  const Part part(context.watch, title_of(context.step), nullptr);
  for (uint64_t round = 0;; ++round) {
    if (context.is_client) {
      const bool wants_more = pace.wants_more(round) && !is_stopped();
      context.peer.tell("round", wants_more ? "more" : "end");
      if (!wants_more) {
        break;
      }
    } else if (context.peer.await("round", "the next round") == "end") {
      break;
    }
    run_round(context, round, outcome);
  }
  outcome.duration_ns = context.is_client ? base::now_ns() - begin : 0;
  return outcome;
}

}  // namespace ringbolt::tools::verify
