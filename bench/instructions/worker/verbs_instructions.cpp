// Instructions of ordinary verbs, operation by operation. Both ends are in this process, on one thread; see ends.h.
#include <fmt/format.h>

#include "counter.h"
#include "crowd.h"
#include "ends.h"

namespace ringbolt::bench {
namespace {

constexpr uint64_t kWarmUp = 256;  // more than a lane has slots
constexpr uint64_t kArmings = 20;
/// Empty polls after a completion: soon afterwards a poller of ours gives its core away and looks at timers as well.
constexpr uint64_t kEmptyPolls = 200;
/// Messages over the network of which a series is made.
constexpr uint64_t kHandful = 40;

enum class Side : uint8_t { none, sender, receiver };

/// Counts `call` if it is done by the side that the series is about. Which one that is, is known when this is compiled:
/// a question would be counted with what it asks about.
template <Side counted, Side own, class Call>
void count(InstructionCounter& counter, Call call) {
  if constexpr (counted == own) {
    counter.measure(call);
  } else {
    call();
  }
}

template <Side counted>
void send_and_receive(InstructionCounter& counter, Ends& ends, uint64_t operations) {
  for (uint64_t i = 0; i < operations; ++i) {
    count<counted, Side::receiver>(counter, [&] { ends.far.post_receive(); });
    count<counted, Side::sender>(counter, [&] { ends.near.post_send(); });
    count<counted, Side::receiver>(counter, [&] { ends.far.take(1); });
    count<counted, Side::sender>(counter, [&] { ends.near.take(1); });
  }
}

template <Side counted>
void send_and_receive_lists(InstructionCounter& counter, Ends& ends, uint64_t operations) {
  for (uint64_t i = 0; i < operations; i += kListLength) {
    count<counted, Side::receiver>(counter, [&] { ends.far.post_receive_list(); });
    count<counted, Side::sender>(counter, [&] { ends.near.post_send_list(); });
    count<counted, Side::receiver>(counter, [&] { ends.far.take(kListLength); });
    count<counted, Side::sender>(counter, [&] { ends.near.take(1); });
  }
}

template <bool in_lists>
void count_sends(InstructionCounter& counter, const std::string& name, unsigned flags, uint64_t operations) {
  Ends ends;
  ends.prepare(IBV_WR_SEND, flags);
  const auto run = [&]<Side counted>(uint64_t n) {
    if constexpr (in_lists) {
      send_and_receive_lists<counted>(counter, ends, n);
    } else {
      send_and_receive<counted>(counter, ends, n);
    }
  };
  operations -= operations % kListLength;
  run.template operator()<Side::none>(kWarmUp);
  ends.near.polls();
  ends.far.polls();
  run.template operator()<Side::sender>(operations);
  ends.far.polls();
  counter.report(name + ".sender", operations, ends.near.polls());
  run.template operator()<Side::receiver>(operations);
  counter.report(name + ".receiver", operations, ends.far.polls());
}

/// The peer takes no part. `post` posts so many requests, the last of which is signaled.
template <void (End::*post)()>
void count_one_sided(InstructionCounter& counter, const std::string& name, Ends& ends, uint64_t requests,
                     uint64_t operations) {
  const auto run = [&] {
    (ends.near.*post)();
    ends.near.take(1);
  };
  for (uint64_t i = 0; i < kWarmUp; i += requests) {
    run();
  }
  ends.near.polls();
  operations -= operations % requests;
  for (uint64_t i = 0; i < operations; i += requests) {
    counter.measure(run);
  }
  counter.report(name, operations, ends.near.polls());
}

/// As two programs play it: who has the peer's message answers at once, and finds out later that its own has arrived. A
/// message there and one back are two operations; all that this thread does for them is counted, acknowledgements too.
/// It polls at once and all the time: else the service thread takes the datagrams in, and nobody counts that.
void ping_pong(InstructionCounter& counter, uint64_t operations) {
  Ends ends(Ends::Memory::shareable, 0);
  ends.prepare(IBV_WR_SEND, IBV_SEND_INLINE);
  const auto play = [&](uint64_t n, const auto& count) {
    End* from = &ends.far;
    End* to = &ends.near;
    for (uint64_t i = 0; i < n; ++i, std::swap(from, to)) {
      count([&] {
        to->post_receive();
        from->post_send();
      });
      count([&] { to->take(2); });  // the message, and the end of its own last one
    }
  };
  const auto uncounted = [](const auto& step) { step(); };
  ends.far.post_receive();
  ends.near.post_send();
  ends.far.take(1);
  play(kWarmUp, uncounted);
  for (uint64_t done = 0; done < operations; done += kHandful) {
    play(kHandful, uncounted);  // after what callgrind has written meanwhile
    ends.near.polls();
    ends.far.polls();
    play(kHandful, [&](const auto& step) { counter.measure(step); });
    counter.report("ping_pong", kHandful, ends.near.polls() + ends.far.polls());
  }
}

void empty_poll(InstructionCounter& counter, uint64_t) {
  Crowd crowd;
  for (const size_t queue_pairs : kCrowdSizes) {
    crowd.grow(queue_pairs);
    ibv_wc completion{};
    crowd.calm();
    for (uint64_t i = 0; i < kEmptyPolls; ++i) {
      counter.measure([&] { ibv_poll_cq(&crowd.cq(), 1, &completion); });
    }
    counter.report(fmt::format("empty_poll_{}", queue_pairs), kEmptyPolls);
  }
}

/// Each arming is followed by an event, as in a program that sleeps.
void arm(InstructionCounter& counter, uint64_t) {
  Crowd crowd;
  for (const size_t queue_pairs : kCrowdSizes) {
    crowd.grow(queue_pairs);
    for (uint64_t i = 0; i < kArmings; ++i) {
      counter.measure([&] { ibv_req_notify_cq(&crowd.cq(), 0); });
      counter.report(fmt::format("arm_{}", queue_pairs), 1);
      crowd.cause_event();
    }
  }
}

Kind one_sided(const std::string& name, ibv_wr_opcode opcode, unsigned flags = 0,
               Ends::Memory memory = Ends::Memory::shareable) {
  return [=](InstructionCounter& counter, uint64_t operations) {
    Ends ends(memory);
    ends.prepare(opcode, flags);
    count_one_sided<&End::post_send>(counter, name, ends, 1, operations);
  };
}

void write_list(InstructionCounter& counter, uint64_t operations) {
  Ends ends;
  ends.prepare(IBV_WR_RDMA_WRITE);
  count_one_sided<&End::post_send_list>(counter, "write_list", ends, kListLength, operations);
}

template <bool in_lists>
Kind sends(const std::string& name, unsigned flags = 0) {
  return [=](InstructionCounter& counter, uint64_t operations) {
    count_sends<in_lists>(counter, name, flags, operations);
  };
}

}  // namespace
}  // namespace ringbolt::bench

int main(int argc, char** argv) {
  using namespace ringbolt::bench;
  constexpr auto kMalloc = Ends::Memory::from_malloc;
  return run_kinds(argc, argv,
                   {{"send", sends<false>("send")},
                    {"send_inline", sends<false>("send_inline", IBV_SEND_INLINE)},
                    {"send_list", sends<true>("send_list")},
                    {"write", one_sided("write", IBV_WR_RDMA_WRITE)},
                    {"write_inline", one_sided("write_inline", IBV_WR_RDMA_WRITE, IBV_SEND_INLINE)},
                    {"write_private", one_sided("write_private", IBV_WR_RDMA_WRITE, 0, kMalloc)},
                    {"write_list", write_list},
                    {"read", one_sided("read", IBV_WR_RDMA_READ)},
                    {"read_private", one_sided("read_private", IBV_WR_RDMA_READ, 0, kMalloc)},
                    {"fetch_add", one_sided("fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD)},
                    {"empty_poll", empty_poll},
                    {"arm", arm},
                    {"ping_pong", ping_pong}});
}
