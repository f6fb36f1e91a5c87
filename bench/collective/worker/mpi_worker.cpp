// Open MPI or MPICH, whichever this file was built with: blocking collectives.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "collective.h"
#include "mpi_main.h"

namespace ringbolt::bench {
namespace {

class MpiChannel {
 public:
  MpiChannel(const Options& options, Control& control) : rank(options.rank), ranks(options.ranks) {
    control.exchange("");
  }
  static std::string description() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    std::string version(text.data(), static_cast<std::size_t>(length));
    std::replace(version.begin(), version.end(), '\t', ' ');
    return version.substr(0, version.find_first_of(",\n"));
  }

  // An error ends the program: MPI_ERRORS_ARE_FATAL is what MPI begins with.
  void all_reduce(const std::byte* in, std::byte* out, std::size_t bytes, const std::string& type) {
    if (type != "float32") {
      throw std::runtime_error("MPI has no elements of type " + type);
    }
    MPI_Allreduce(in == out ? MPI_IN_PLACE : in, out, static_cast<int>(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  }
  void all_gather(const std::byte* in, std::byte* out, std::size_t bytes) {
    const int count = static_cast<int>(bytes / sizeof(float));
    MPI_Allgather(in == out + rank * bytes ? MPI_IN_PLACE : in, count, MPI_FLOAT, out, count, MPI_FLOAT,
                  MPI_COMM_WORLD);
  }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }

  unsigned rank;
  unsigned ranks;
  Buffers buffers = {};
};

}  // namespace

template <>
std::string run_block(MpiChannel& channel, const Block& block) {
  return run_collective(channel, channel.buffers, block);
}

}  // namespace ringbolt::bench

int main(int argc, char** argv) { return ringbolt::bench::mpi_main<ringbolt::bench::MpiChannel>(argc, argv); }
