// Open MPI or MPICH, whichever this file was built with: blocking MPI_Send and MPI_Recv, the classic ping-pong.
#include <mpi.h>

#include <array>

#include "mpi_main.h"

namespace ringbolt::bench {
namespace {

class MpiChannel {
 public:
  MpiChannel(const Options& options, Control& control)
      : rank(options.rank), ranks(options.ranks), arena(make_private_arena()),
        left_(static_cast<int>((rank + ranks - 1) % ranks)), right_(static_cast<int>((rank + 1) % ranks)) {
    control.exchange("");
  }
  static std::string description() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    const std::string version(text.data(), static_cast<std::size_t>(length));
    return version.substr(0, version.find_first_of(",\n"));
  }

  void expect(std::size_t size) {
    if (ranks > 2) {  // in a ring everybody sends first: the receive must be there
      MPI_Irecv(arena.incoming(), static_cast<int>(size), MPI_BYTE, left_, kTag, MPI_COMM_WORLD, &incoming_);
    }
  }
  void send(std::size_t size) {
    if (ranks > 2) {
      MPI_Isend(arena.outgoing(), static_cast<int>(size), MPI_BYTE, right_, kTag, MPI_COMM_WORLD, &outgoing_);
    } else {
      MPI_Send(arena.outgoing(), static_cast<int>(size), MPI_BYTE, right_, kTag, MPI_COMM_WORLD);
    }
  }
  void receive(std::size_t size) {
    if (ranks > 2) {
      MPI_Wait(&incoming_, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(arena.incoming(), static_cast<int>(size), MPI_BYTE, left_, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  void flush() {
    if (ranks > 2) {
      MPI_Wait(&outgoing_, MPI_STATUS_IGNORE);
    }
  }
  void progress() {}

  void stream_in_begin(uint64_t, const std::string&) {}
  void stream_out(uint64_t count, const std::string&) {
    std::array<MPI_Request, kWindow> requests{};
    for (uint64_t sent = 0; sent < count; sent += kWindow) {
      for (unsigned i = 0; i < kWindow; ++i) {
        fill(arena.slot(i), sizeof(uint64_t), seed_of(0, sent + i));
        MPI_Isend(arena.slot(i), sizeof(uint64_t), MPI_BYTE, 1, kTag, MPI_COMM_WORLD, &requests[i]);
      }
      MPI_Waitall(kWindow, requests.data(), MPI_STATUSES_IGNORE);
    }
    MPI_Recv(arena.slot(0), sizeof(uint64_t), MPI_BYTE, 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  void stream_in(uint64_t count, const std::string&) {
    std::array<MPI_Request, kWindow> requests{};
    for (uint64_t taken = 0; taken < count; taken += kWindow) {
      for (unsigned i = 0; i < kWindow; ++i) {
        MPI_Irecv(arena.slot(i), sizeof(uint64_t), MPI_BYTE, 0, kTag, MPI_COMM_WORLD, &requests[i]);
      }
      MPI_Waitall(kWindow, requests.data(), MPI_STATUSES_IGNORE);
      for (unsigned i = 0; i < kWindow; ++i) {
        expect_holds(arena.slot(i), sizeof(uint64_t), seed_of(0, taken + i));
      }
    }
    MPI_Send(arena.slot(0), sizeof(uint64_t), MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
  }

  unsigned rank;
  unsigned ranks;
  Arena arena;

 private:
  static constexpr int kTag = 7;
  static constexpr int kWindow = 64;  // the driver orders multiples of it

  int left_;
  int right_;
  MPI_Request incoming_ = MPI_REQUEST_NULL;
  MPI_Request outgoing_ = MPI_REQUEST_NULL;
};

}  // namespace
}  // namespace ringbolt::bench

int main(int argc, char** argv) { return ringbolt::bench::mpi_main<ringbolt::bench::MpiChannel>(argc, argv); }
