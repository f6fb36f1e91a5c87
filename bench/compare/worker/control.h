#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ringbolt::bench {

/// One block of work, as the driver orders it: `run OPERATION SIZE ITERATIONS touch|still`.
struct Command {
  std::string operation;
  std::size_t size_bytes = 0;
  uint64_t iterations = 0;
  bool is_touched = true;  ///< payload is rewritten before and read after every operation
};

/// A worker's line to the driver: a UNIX socket with one text line per message. While a worker waits for its next
/// command it sleeps in read(), so idle peers leave the cores to the one that is measured. Not thread-safe.
class Control {
 public:
  /// Connects and says `hello RANK`. Throws std::runtime_error.
  Control(const std::string& socket_path, unsigned rank);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  /// Gives `blob` (any bytes) to the driver and returns the blobs of all ranks, by rank. Blocks.
  /// Until the last rank has given its own; the driver's patience bounds that. Throws std::runtime_error.
  std::vector<std::string> exchange(const std::string& blob);

  /// Waits for the next command; false when the driver says `quit` or is gone.
  bool next(Command& command);

  /// Sends one line (`ok KEY=VALUE ...`, `ready ...` or `error TEXT`).
  void answer(const std::string& line);

 private:
  bool read_line(std::string& line);

  int fd_ = -1;
  std::string pending_;
};

}  // namespace ringbolt::bench
