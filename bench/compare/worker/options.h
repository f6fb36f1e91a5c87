#pragma once

#include <string>

namespace ringbolt::bench {

/// Where a worker's payload lives.
enum class Memory {
  kShared,   ///< memory that the library under test allocated, so that it may lie in a shared segment
  kPrivate,  ///< plain malloc memory of the process
};

/// What every worker is told on its command line:
/// `WORKER --control PATH --page PATH --rank N --ranks N --memory shared|private
/// [--threads one|many]`.
/// MPI workers take rank and ranks from MPI instead.
struct Options {
  std::string control;  ///< UNIX stream socket on which the driver listens
  std::string page;     ///< file of one page, shared by the workers of one peer (see turn_page.h)
  unsigned rank = 0;
  unsigned ranks = 2;
  Memory memory = Memory::kShared;
  bool may_have_threads = false;  ///< the library is told that several threads may call it at once; one does
};

/// Throws std::runtime_error for an unknown or incomplete option.
Options parse_options(int argc, char** argv);

/// Binds the calling process to core `rank % 2`: the two roles of a pair sit on core 0 and core 1.
/// Throws std::runtime_error when the kernel refuses.
void pin_to_core_of(unsigned rank);

}  // namespace ringbolt::bench
