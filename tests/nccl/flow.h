#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "links.h"
#include "pattern.h"
#include "rank.h"

namespace ringbolt::test {

/// Page-aligned and zeroed. Move-only.
class Buffer {
 public:
  explicit Buffer(size_t bytes);
  [[nodiscard]] unsigned char* data() const { return memory_.get(); }
  [[nodiscard]] size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(unsigned char* memory) const { std::free(memory); }
  };
  size_t bytes_;
  std::unique_ptr<unsigned char, Free> memory_;
};

/// What both ends know of a stream of messages.
struct Stream {
  std::vector<size_t> sizes = {};  ///< message k has sizes[k % n] bytes
  uint64_t count = 0;
  size_t depth = 8;
  size_t posted_more = 0;  ///< receives are posted by up to so much larger

  [[nodiscard]] size_t size_of(uint64_t number) const { return sizes[number % sizes.size()]; }
  [[nodiscard]] size_t posted_for(uint64_t number) const {
    return size_of(number) + (posted_more == 0 ? 0 : number % 4 * posted_more / 3);
  }
  [[nodiscard]] size_t largest() const;
};

/// One end of a stream. Built and ended by the service thread, which registers its memory; stepped by the progress
/// thread. Throws Failure.
class Sender {
 public:
  Sender(Rank& rank, const Link& link, Stream stream);
  /// Hands out what fits and looks for what is done. True when anything moved.
  bool step();
  [[nodiscard]] bool is_done() const { return completed_ == stream_.count; }
  void end();  ///< deregisters
  [[nodiscard]] uint64_t refusals() const { return refusals_; }
  [[nodiscard]] size_t most_outstanding() const { return most_; }
  /// As many more as the receiver may have posted, then no more. Returns how many that makes.
  uint64_t stop_soon() { return stream_.count = next_ + stream_.depth; }

 private:
  Rank& rank_;
  void* comm_;
  int channel_;
  Stream stream_;
  size_t stride_;
  Buffer buffer_;
  void* region_ = nullptr;
  std::vector<void*> requests_;
  uint64_t next_ = 0;
  uint64_t completed_ = 0;
  uint64_t refusals_ = 0;
  size_t most_ = 0;
  bool is_filled_ = false;
};

class Receiver {
 public:
  Receiver(Rank& rank, const Link& link, Stream stream);
  bool step();
  /// As step() does, by themselves; `post` stops when `limit` are outstanding.
  bool post(size_t limit);
  bool collect();
  [[nodiscard]] bool is_done() const { return completed_ == stream_.count; }
  void end();
  [[nodiscard]] uint64_t completed() const { return completed_; }
  [[nodiscard]] size_t outstanding() const { return static_cast<size_t>(next_ - completed_); }
  void set_count(uint64_t count) { stream_.count = count; }

 private:
  void verify(uint64_t number, const int* sizes);
  [[nodiscard]] bool test_one(uint64_t number);

  Rank& rank_;
  void* comm_;
  int peer_;
  int channel_;
  Stream stream_;
  size_t stride_;
  Buffer buffer_;
  void* region_ = nullptr;
  std::vector<void*> requests_;
  uint64_t next_ = 0;
  uint64_t completed_ = 0;
};

/// Steps all until all are done. Throws Failure after `limit_s`.
void drive(std::vector<Sender>& senders, std::vector<Receiver>& receivers, double limit_s);

/// On the progress thread: one message each way by every link, verified. Registers and deregisters on this thread.
void greet(Rank& rank, std::vector<Link>& links, size_t bytes = 1000);

/// Both ends of `stream` by every link, on the progress thread.
void run_streams(Rank& rank, std::vector<Link>& links, const Stream& stream, double limit_s);

}  // namespace ringbolt::test
