// What the calls of a small SEND cost by themselves: both queue pairs, one thread, one core, no cache line moves. Needs
// our library first in LD_LIBRARY_PATH; skips itself where there is no device.
#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <stdexcept>

#include "compare/worker/samples.h"
#include "footprint/loop_device.h"

namespace ringbolt::bench {
namespace {

/// Ticks spent in one call, summed over a benchmark.
class CallTime {
 public:
  template <class Call>
  auto measure(Call call) {
    const uint64_t start = now_ticks();
    auto result = call();
    ticks_ += now_ticks() - start;
    ++calls_;
    return result;
  }
  double mean_ns() const { return calls_ == 0 ? 0 : static_cast<double>(ticks_) * ns_per_tick() / static_cast<double>(calls_); }

 private:
  uint64_t ticks_ = 0;
  uint64_t calls_ = 0;
};

void send_to_self(benchmark::State& state) {
  std::unique_ptr<LoopDevice> device;
  try {
    device = std::make_unique<LoopDevice>();
  } catch (const std::runtime_error& refusal) {
    state.SkipWithError(refusal.what());
    return;
  }
  const QueuePair one = device->make_queue_pair();
  const QueuePair other = device->make_queue_pair();
  device->connect(*one, *other);
  device->exchange(*one, *other, 4);
  ibv_recv_wr receive{};
  ibv_send_wr send{};
  send.opcode = IBV_WR_SEND;
  CallTime post_receive, post_send, first_poll, second_poll, empty_poll;
  ibv_wc completion{};
  const auto poll = [&] { return ibv_poll_cq(device->cq(), 1, &completion); };
  for (auto _ : state) {
    ibv_recv_wr* bad_receive = nullptr;
    ibv_send_wr* bad_send = nullptr;
    post_receive.measure([&] { return ibv_post_recv(other.get(), &receive, &bad_receive); });
    post_send.measure([&] { return ibv_post_send(one.get(), &send, &bad_send); });
    int found = first_poll.measure(poll);
    found += second_poll.measure(poll);
    while (found < 2) {
      found += poll();
    }
    empty_poll.measure(poll);
  }
  state.counters["post_recv_ns"] = post_receive.mean_ns();
  state.counters["post_send_ns"] = post_send.mean_ns();
  state.counters["poll_1_ns"] = first_poll.mean_ns();
  state.counters["poll_2_ns"] = second_poll.mean_ns();
  state.counters["empty_poll_ns"] = empty_poll.mean_ns();
}
BENCHMARK(send_to_self);

}  // namespace
}  // namespace ringbolt::bench
