// NCCL's net plugin of ours, driven as NCCL drives it: isend and irecv with test, in private memory.
#include <dlfcn.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "nccl/net_abi.h"
#include "serve.h"

namespace ringbolt::bench {
namespace {

namespace abi = nccl::abi;

void log_nothing(int, unsigned long, const char*, int, const char*, ...) {}

std::string hex(const std::array<char, 128>& bytes) {
  std::string text;
  for (const char one : bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(one));
  }
  return text;
}

std::array<char, 128> bytes_of(const std::string& text) {
  std::array<char, 128> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return bytes;
}

class NcclChannel {
 public:
  NcclChannel(const Options& options, Control& control)
      : rank(options.rank), ranks(options.ranks), arena(make_private_arena()) {
    const char* const path = std::getenv("RINGBOLT_NCCL_PLUGIN");
    void* const object = ::dlopen(path == nullptr ? "libnccl-net-ringbolt.so" : path, RTLD_NOW | RTLD_LOCAL);
    table_ = object == nullptr ? nullptr : static_cast<const abi::NetV11*>(::dlsym(object, "ncclNetPlugin_v11"));
    if (table_ == nullptr) {
      throw std::runtime_error(fmt::format("the plugin: {}", ::dlerror()));
    }
    void* context = nullptr;
    check(table_->init(&context, 1, nullptr, log_nothing, nullptr), "init");
    std::array<char, 128> own{};
    void* listening = nullptr;
    check(table_->listen(context, 0, own.data(), &listening), "listen");
    std::array<char, 128> other = bytes_of(control.exchange(hex(own)).at(1 - rank));
    while (send_comm_ == nullptr || receive_comm_ == nullptr) {
      if (send_comm_ == nullptr) {
        check(table_->connect(context, 0, other.data(), &send_comm_, nullptr), "connect");
      }
      if (receive_comm_ == nullptr) {
        check(table_->setup.accept(listening, &receive_comm_, nullptr), "accept");
      }
    }
    check(table_->ending.close_listen(listening), "closeListen");
  }
  static std::string description() { return "NCCL net plugin, v11"; }

  void expect(std::size_t size) {
    void* data = arena.incoming();
    int tag = 0;
    for (incoming_ = nullptr; incoming_ == nullptr;) {
      check(table_->irecv(receive_comm_, 1, &data, &size, &tag, nullptr, nullptr, &incoming_), "irecv");
    }
  }
  void send(std::size_t size) {
    for (outgoing_ = nullptr; outgoing_ == nullptr;) {
      check(table_->isend(send_comm_, arena.outgoing(), size, 0, nullptr, nullptr, &outgoing_), "isend");
    }
  }
  void receive(std::size_t) { wait(incoming_); }
  void flush() { wait(outgoing_); }
  void progress() {}

  unsigned rank;
  unsigned ranks;
  Arena arena;

 private:
  static void check(int result, const char* call) {
    if (result != 0) {
      throw std::runtime_error(fmt::format("{} returned {}", call, result));
    }
  }
  void wait(void*& request) {
    for (int is_done = request == nullptr ? 1 : 0; is_done == 0;) {
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
};

}  // namespace
}  // namespace ringbolt::bench

int main(int argc, char** argv) { return ringbolt::bench::worker_main<ringbolt::bench::NcclChannel>(argc, argv); }
