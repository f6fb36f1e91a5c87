// Ringbolt's Group, as a program uses it: private memory, blocking calls.
#include <cstdlib>
#include <stdexcept>

#include "collective.h"
#include "ringbolt/group.h"
#include "serve.h"

namespace ringbolt::bench {
namespace {

/// A call that hangs is to say why before the block's own deadline ends the worker.
constexpr uint64_t kTimeoutMs = 20'000;

class GroupChannel {
 public:
  GroupChannel(const Options& options, Control& control)
      : group_(join(control)), rank(group_.rank()), ranks(group_.size()) {
    if (rank != options.rank) {
      throw std::runtime_error(fmt::format("node {} became rank {}: they must be the same", options.rank, rank));
    }
    options_.timeout_ms = kTimeoutMs;
  }

  static std::string description() { return "ringbolt::Group, blocking calls, private memory"; }

  void all_reduce(const std::byte* in, std::byte* out, std::size_t bytes, const std::string& type) {
    const Type element = type == "float32" ? Type::float32 : type == "float16" ? Type::float16 : Type::bfloat16;
    const std::size_t count = bytes / (element == Type::float32 ? 4 : 2);
    expect_ok(group_.all_reduce(in, out, count, element, Reduction::sum, options_));
  }
  void all_gather(const std::byte* in, std::byte* out, std::size_t bytes) {
    expect_ok(group_.all_gather(in, out, bytes / sizeof(float), Type::float32, options_));
  }
  void barrier() { expect_ok(group_.barrier(options_)); }

 private:
  static Group join(Control& control) {
    control.exchange("");
    return Group::join();
  }
  static void expect_ok(const Status& status) {
    if (!status.is_ok()) {
      throw std::runtime_error(status.text);
    }
  }

  Group group_;
  CallOptions options_;

 public:
  unsigned rank;
  unsigned ranks;
  Buffers buffers = {};
};

}  // namespace

template <>
std::string run_block(GroupChannel& channel, const Block& block) {
  return run_collective(channel, channel.buffers, block);
}

}  // namespace ringbolt::bench

int main(int argc, char** argv) {
  try {
    ringbolt::bench::Options options = ringbolt::bench::parse_options(argc, argv);
    const char* node = std::getenv("RINGBOLT_NODE");
    if (node == nullptr) {
      throw std::runtime_error(
          "RINGBOLT_NODE is not set; bench/collective/compare.py starts this program on a cluster");
    }
    options.rank = static_cast<unsigned>(std::stoul(node));
    return ringbolt::bench::serve<ringbolt::bench::GroupChannel>(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
}
