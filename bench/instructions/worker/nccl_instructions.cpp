// NCCL's net plugin of ours, driven as NCCL drives it: one thread sends to itself, so that each test() finds at once
// what it asks for.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "counter.h"
#include "nccl/net_abi.h"

namespace ringbolt::bench {
namespace {

namespace abi = nccl::abi;

constexpr uint64_t kWarmUp = 256;

void log_nothing(int, unsigned long, const char*, int, const char*, ...) {}

void check(int result, const char* call) {
  if (result != 0) {
    throw std::runtime_error(fmt::format("{} returned {}", call, result));
  }
}

/// Both comms of a connection of this process with itself. They live as long as it does.
class Loop {
 public:
  Loop() {
    const char* const path = std::getenv("RINGBOLT_NCCL_PLUGIN");
    void* const object = ::dlopen(path == nullptr ? "libnccl-net-ringbolt.so" : path, RTLD_NOW | RTLD_LOCAL);
    table_ = object == nullptr ? nullptr : static_cast<const abi::NetV11*>(::dlsym(object, "ncclNetPlugin_v11"));
    if (table_ == nullptr) {
      throw std::runtime_error(fmt::format("the plugin: {}", ::dlerror()));
    }
    void* context = nullptr;
    check(table_->init(&context, 1, nullptr, log_nothing, nullptr), "init");
    std::array<char, 128> handle{};
    void* listening = nullptr;
    check(table_->listen(context, 0, handle.data(), &listening), "listen");
    while (send_comm_ == nullptr || receive_comm_ == nullptr) {
      if (send_comm_ == nullptr) {
        check(table_->connect(context, 0, handle.data(), &send_comm_, nullptr), "connect");
      }
      if (receive_comm_ == nullptr) {
        check(table_->setup.accept(listening, &receive_comm_, nullptr), "accept");
      }
      usleep(1000);  // callgrind runs one thread at a time: the plugin's has to have its turn
    }
  }

  void irecv() {
    void* data = to_.data();
    size_t size = to_.size();
    int tag = 0;
    check(table_->irecv(receive_comm_, 1, &data, &size, &tag, nullptr, nullptr, &incoming_), "irecv");
  }
  void isend() {
    check(table_->isend(send_comm_, from_.data(), from_.size(), 0, nullptr, nullptr, &outgoing_), "isend");
  }
  void test_receive() { test(incoming_, n_receive_tests_); }
  void test_send() { test(outgoing_, n_send_tests_); }
  uint64_t receive_tests() { return std::exchange(n_receive_tests_, 0); }
  uint64_t send_tests() { return std::exchange(n_send_tests_, 0); }

 private:
  void test(void*& request, uint64_t& n_tests) {
    for (int is_done = 0; is_done == 0; ++n_tests) {
      int size = 0;
      check(table_->ending.test(request, &is_done, &size), "test");
    }
    request = nullptr;
  }

  const abi::NetV11* table_ = nullptr;
  void* send_comm_ = nullptr;
  void* receive_comm_ = nullptr;
  void* incoming_ = nullptr;
  void* outgoing_ = nullptr;
  std::array<std::byte, 8> from_{};
  std::array<std::byte, 8> to_{};
  uint64_t n_send_tests_ = 0;
  uint64_t n_receive_tests_ = 0;
};

enum class Side : uint8_t { none, sender, receiver };

void isend_and_irecv(InstructionCounter& counter, uint64_t operations) {
  Loop loop;
  const auto run = [&](Side counted, uint64_t n) {
    const auto count = [&](Side own, auto call) { own == counted ? counter.measure(call) : call(); };
    for (uint64_t i = 0; i < n; ++i) {
      count(Side::receiver, [&] { loop.irecv(); });
      count(Side::sender, [&] { loop.isend(); });
      count(Side::receiver, [&] { loop.test_receive(); });
      count(Side::sender, [&] { loop.test_send(); });
    }
  };
  run(Side::none, kWarmUp);
  loop.send_tests();
  run(Side::sender, operations);
  counter.report("nccl_isend", operations, loop.send_tests());
  loop.receive_tests();
  run(Side::receiver, operations);
  counter.report("nccl_irecv", operations, loop.receive_tests());
}

}  // namespace
}  // namespace ringbolt::bench

int main(int argc, char** argv) {
  return ringbolt::bench::run_kinds(argc, argv, {{"nccl", ringbolt::bench::isend_and_irecv}});
}
