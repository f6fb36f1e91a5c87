// Hot path: no allocation, lock or system call for an operation.
#include "perf/fetch_round.h"

#include <array>

namespace ringbolt::tools::perf {

FetchRound::FetchRound(Link& link, Peer& peer)
    : link_(link),
      peer_(peer),
      fetch_(link, peer, link.parameters().latency_check),
      poster_(link, peer, Fetch::opcode_of(link.parameters())),
      patience_(link, peer, "what was asked for") {}

bool FetchRound::ask(uint64_t number) {
  constexpr uint64_t kOften = 4096;
  if (number % kOften == 0) {
    peer_.tell_working();
  }
  fetch_.add(poster_, 0, number);
  poster_.post(0);
  std::array<ibv_wc, 1> completion;
  while (link_.poll(link_.send_cq(), completion, "what was asked for") == 0) {
    patience_.wait();
  }
  patience_.renew();
  fetch_.check(0, number);
  return true;
}

}  // namespace ringbolt::tools::perf
